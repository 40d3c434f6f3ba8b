"""Calls that are alike as one row: shapes, extremes, norms and marks, for the card and the live tree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape

import numpy as np

from tensornp.core.lowlevel.text import counted, number_ranges
from tensornp.core.values.stats.distribution import Histogram
from tensornp.models.names.quoted import MAX_INSIDE, cut, cut_inside
from tensornp.models.outline.columns import ABOUT, at_a_glance
from tensornp.passes.records import FORWARD, LEFT, NEW, OPERATOR, RAISED, Call, Figures, PassRecord, Value
from tensornp.passes.tree import PASSED_ON, CallLine, odd_word, state_of
from tensornp.passes.wording import sizes_text
from tensornp.render.layout.style import QUIET
from tensornp.render.layout.table import MARKS, Drawn, TableRow
from tensornp.render.pictures.palette import sparkline_text
from tensornp.render.pictures.stats_line import histogram_img

CALL, SHAPE, DTYPE, SAMPLE, EXTREMES, NORM, GRAD = (
    "call", "shape", "dtype", "sample", "min … max", "‖out‖", "‖grad‖",
)  # fmt: skip
HEADINGS = (CALL, SHAPE, DTYPE, SAMPLE, EXTREMES, NORM, GRAD, MARKS)
_MAX_TEXT, _MAX_CLASS, _MAX_ERROR = 400, 24, 60
_NUM_BARS, _MAX_BINS, _FEW, _MAX_SAMPLES = 8, 32, 4, 16
"""Bars of a text, bins of a picture, the fewest elements of a histogram, and the most calls that share one."""
_WIDTH, _HEIGHT = 48, 14


def row_of(line: CallLine, record: PassRecord, alarm: str) -> TableRow:
    if not line.calls:
        return TableRow((f"… {counted(line.num_hidden, 'more call')}",), level=line.level, is_quiet=True)
    first = line.calls[0]
    is_quiet = state_of(first) == PASSED_ON and not alarm
    label, beside = cut_inside(line.label, MAX_INSIDE), beside_of(line, record)
    quiet = f' <span style="{"" if is_quiet else QUIET}">{escape(beside)}</span>' if beside else ""
    outputs = [value for call in line.calls if (value := main_value(call.outputs)) is not None]
    figures = [one.figures for one in outputs if one.figures is not None]
    cells = {
        CALL: Drawn(f"{label} {beside}".strip(), escape(label) + quiet),
        SHAPE: shape_of(first),
        DTYPE: cut(outputs[0].dtype, _MAX_CLASS) if outputs else "",
        SAMPLE: sample_cell(figures, [one.sample for one in outputs]),
        EXTREMES: extremes(figures),
        NORM: greatest_norm(figures),
        GRAD: greatest_norm([one for call in line.calls if (one := gradient_of(call)) is not None]),
        MARKS: cut(", ".join(filter(None, _marks(line, record, alarm))), _MAX_TEXT),
    }
    cells_in_order = tuple(cells[heading] for heading in HEADINGS)
    return TableRow(cells_in_order, has_facts=bool(outputs), alarm=alarm, level=line.level, is_quiet=is_quiet)


def beside_of(line: CallLine, record: PassRecord) -> str:
    """Return the class of a line and its steps, or which call it is; for an operator, its place."""
    first = line.calls[0]
    if not first.class_name and first.source is not None:
        return cut(str(replace(first.source, text="")), _MAX_CLASS)
    nth = f"call {first.nth + 1:,}" if first.nth and len(line.calls) == 1 else ""
    class_name = cut_inside(first.class_name, _MAX_CLASS) if first.class_name != line.label else ""
    return ", ".join(filter(None, (class_name, _steps_text(line, record) or nth)))


def _steps_text(line: CallLine, record: PassRecord) -> str:
    """Return the steps of calls that the block makes itself in a loop: ``steps 1 to 4``."""
    numbers = sorted({record.step_of(call) for call in line.calls})
    steps = [number for number in numbers if number]
    if line.calls[0].parent or not steps:
        return ""
    ranges = cut_inside(", ".join(number_ranges(steps)).replace("..", " to "), _MAX_CLASS)
    return f"{'step' if len(steps) == 1 else 'steps'} {ranges}{' and after' if len(steps) < len(numbers) else ''}"


def main_value(values: Mapping[str, Value]) -> Value | None:
    """Return the value that a row shows: an odd one, else the first that was read."""
    every = list(values.values())
    odd = next((one for one in every if one.is_odd), None)
    return odd or next((one for one in every if one.figures is not None), every[0] if every else None)


def gradient_of(call: Call) -> Figures | None:
    """Return an odd gradient of a call's outputs, else the largest: that of logits, not of the loss."""
    known = [value.grad for value in call.outputs.values() if value.grad is not None]
    return next((one for one in known if one.is_odd), max(known, key=lambda one: one.count, default=None))


def shape_of(call: Call) -> str:
    """Return the shape of the output, or that of the input of a call without one: ``(4, 128) →``."""
    taken, given = main_value(call.inputs), main_value(call.outputs)
    if given is not None:
        return sizes_text(given.shape)
    return f"{sizes_text(taken.shape)} →" if taken is not None else ""


def extremes(figures: Iterable[Figures]) -> str:
    """Return the least and greatest element of all; one number if both read alike."""
    known = [one for one in figures if one.count]
    if not known:
        return ""
    if any(one.has_nan for one in known):
        return "nan"
    ends = min(one.min for one in known), max(one.max for one in known)
    low, high = map(at_a_glance, ends)
    return f"{low} … {high}" if low != high else low if ends[0] == ends[1] else f"{ABOUT}{low}"


def norm_of(figures: Figures | None) -> float | None:
    """Return a norm, or the largest magnitude if squares leave float32; None if it was not taken."""
    if figures is None or (math.isnan(figures.norm) and not figures.has_nan):
        return None
    return max(abs(figures.min), abs(figures.max)) if figures.is_norm_beyond else figures.norm


def greatest_norm(figures: Iterable[Figures]) -> str:
    """Return the largest norm, behind ``≤`` if norms differ; NaN if any is, empty if one is unknown."""
    figures = list(figures)
    norms = [norm for one in figures if (norm := norm_of(one)) is not None]
    if len(norms) < len(figures) or not norms or any(map(math.isnan, norms)):
        return "nan" if any(map(math.isnan, norms)) else ""
    if any(one.is_norm_beyond for one in figures):
        return f"≥{at_a_glance(max(norms))}"
    return ("≤" if len(set(map(at_a_glance, norms))) > 1 else "") + at_a_glance(max(norms))


def sample_cell(figures: Sequence[Figures], samples: Sequence[Sequence[float]]) -> str:
    """Return a histogram of samples as block characters and as a picture; empty for few or equal values."""
    values = [value for sample in samples[:: math.ceil(len(samples) / _MAX_SAMPLES) or 1] for value in sample]
    low, high = min((one.min for one in figures), default=math.nan), max((one.max for one in figures), default=math.nan)
    if len(values) < _FEW or not low < high or not math.isfinite(high - low):
        return ""
    num_bins = min(_MAX_BINS, round(2 * math.sqrt(len(values))))
    counts, edges = np.histogram(np.clip(values, low, high), num_bins, (low, high))
    histogram = Histogram(counts, edges, f"sample of {len(values):,}")
    text = sparkline_text(histogram.cells(_NUM_BARS).tolist())
    return Drawn(text, histogram_img(histogram, _WIDTH, _HEIGHT))


def _marks(line: CallLine, record: PassRecord, alarm: str) -> Iterator[str]:
    """Yield the marks of calls that are alike, without those that the alarm has."""
    call = line.calls[0]
    num_calls = _num_calls(line, record)
    is_once_a_step = num_calls == len({record.step_of(one) for one in line.calls})
    yield f"{num_calls:,} calls" if num_calls > 1 and not is_once_a_step else ""
    yield call.phase if call.phase != FORWARD else ""
    if call.status == RAISED and not alarm:
        # The text of an error stands at the innermost call.
        is_outer = any(one.status == RAISED for one in record.children(call))
        yield f"raised {'' if is_outer else cut(call.error, _MAX_ERROR)}".strip()
    yield "did not return" if call.status == LEFT else ""
    taken, given = main_value(call.inputs), main_value(call.outputs)
    # With operators, a relation is that of the operator inside.
    yield given.relation if given is not None and given.relation != NEW and given.maker in (None, call.index) else ""
    dtypes = [one.dtype for one in (taken, given) if one is not None and "float" in one.dtype]
    yield " → ".join(dtypes) if len(set(dtypes)) == 2 else ""
    yield PASSED_ON if state_of(call) == PASSED_ON and not alarm else ""
    yield f"{call.asked_for} was asked for" if call.asked_for else ""
    yield call.detail
    yield from (f"{path} contains {word}" for path, one in call.params.items() if (word := odd_word([one])))
    yield from dict.fromkeys(one.note for one in call.outputs.values() if one.note)
    yield f"{counted(line.num_hidden, 'call')} inside" if line.num_hidden else ""


def _num_calls(line: CallLine, record: PassRecord) -> int:
    """Return the number of calls of a line inside each call around it."""
    parents = [record.calls[index] for index in {call.parent or 0 for call in line.calls}]
    if line.calls[0].kind == OPERATOR:
        return len(line.calls) // len(parents)
    of_each, of_parents = (len(some) // len({call.name for call in some}) for some in (line.calls, parents))
    return of_each // of_parents

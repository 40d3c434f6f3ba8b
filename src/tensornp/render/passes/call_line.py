"""Calls that are alike, as one row of a tree: what they got and gave, and what is unusual about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from html import escape

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import name_of
from tensornp.models.names.quoted import MAX_INSIDE, cut, cut_inside
from tensornp.models.outline.columns import at_a_glance
from tensornp.passes.outline import PASSED_ON, CallLine, not_finite, state_of
from tensornp.passes.records import LEFT, RAISED, RECOMPUTED, Figures, ModuleCall, Value
from tensornp.passes.short import sizes_told
from tensornp.passes.verdict.dead_units import dead_told
from tensornp.passes.verdict.wording import word_of
from tensornp.render.layout.style import QUIET
from tensornp.render.layout.table import MARKS, Drawn, TableRow
from tensornp.render.passes.cells import between, main_value, shapes
from tensornp.render.passes.sample import sample_cell

PICTURE = "sample"
HEADINGS = ("call", "in → out", "dtype", PICTURE, "min … max", "‖out‖", "‖grad‖", MARKS)
ALWAYS = ("call", "in → out")
"""Columns that are there although nothing is said in them."""
_MAX_TEXT = 400
_MAX_CLASS = 24
_MAX_ERROR = 60
_MAX_VALUES = 8
"""Values of a call whose shapes are told behind those of the first."""


def call_line_row(line: CallLine, above: CallLine, alarms: Mapping[int, str], outer: frozenset[int | None]) -> TableRow:
    """Return the row of a line of the tree below the line `above`.

    `alarms` say by the index of a call what gives cause for alarm; an error came through those that are `outer`.
    """
    if not line.calls:
        return TableRow((f"… {counted(line.num_hidden, 'more call')}",), level=line.level, is_quiet=True)
    first, alarm = line.calls[0], alarms.get(line.calls[0].index, "")
    num_calls = _num_calls(line) // max(_num_calls(above), 1)
    is_quiet = state_of(first) == PASSED_ON
    outputs = [value for call in line.calls if (value := main_value(call.outputs)) is not None]
    given = [value.figures for value in outputs if value.figures is not None]
    back = [one for call in line.calls if (one := worst_figures(value.grad for value in call.outputs)) is not None]
    cells = (
        _name(line.label, first.class_name, "" if is_quiet else QUIET),
        shapes(main_value(first.inputs), main_value(first.outputs)),
        cut(name_of(outputs[0].dtype), _MAX_CLASS) if outputs else "",
        sample_cell(given, [value.sample for value in outputs]),
        between(given),
        greatest_norm(given),
        greatest_norm(back),
        cut(", ".join(filter(None, marks_of(line, num_calls, alarm, outer))), _MAX_TEXT),
    )
    titles = ("", all_shapes(first), *[""] * (len(cells) - 2))
    return TableRow(cells, titles, has_facts=bool(outputs), alarm=alarm, level=line.level, is_quiet=is_quiet)


def _num_calls(line: CallLine) -> int:
    """Return how many calls there are of each module of a line."""
    return len(line.calls) // max(len({call.name for call in line.calls}), 1)


def _name(label: str, class_name: str, style: str) -> Drawn:
    name = cut_inside(label, MAX_INSIDE)
    said = cut_inside(class_name, _MAX_CLASS) if class_name != label else ""
    beside = f' <span style="{style}">{escape(said)}</span>' if said else ""
    return Drawn(f"{name} {said}".strip(), escape(name) + beside)


def worst_figures(figures: Iterable[Figures | None]) -> Figures | None:
    known = [one for one in figures if one is not None]
    return next((one for one in known if not one.is_finite), known[0] if known else None)


def all_shapes(call: ModuleCall) -> str:
    """Return all that a call got and gave, each by its place."""
    sides = [
        ", ".join(f"{one.path} {name_of(one.dtype)} {sizes_told(one.shape)}".strip() for one in values[:_MAX_VALUES])
        + (f" and {len(values) - _MAX_VALUES:,} more" if len(values) > _MAX_VALUES else "")
        for values in (call.inputs, call.outputs)
    ]
    return cut(" → ".join(sides), _MAX_TEXT)


def least_norm(one: Figures) -> float | None:
    """Return the norm, or what it is at least, where squares are beyond float32's range.

    None where none was taken.
    """
    if one.has_nan or not math.isnan(one.norm):
        return one.norm
    return None if math.isnan(one.sum) else max(abs(one.min), abs(one.max))


def greatest_norm(figures: Iterable[Figures]) -> str:
    """Return the largest of some norms, NaN if any is, or what that is at least."""
    norms = [(one, norm) for one in figures if (norm := least_norm(one)) is not None]
    if not norms:
        return ""
    known = [norm for one, norm in norms if one.has_nan or not math.isnan(one.norm)]
    largest = math.nan if any(map(math.isnan, known)) else max(norm for _, norm in norms)
    most = max((norm * math.sqrt(one.count) for one, norm in norms if math.isnan(one.norm)), default=0.0)
    if not math.isnan(largest) and most > max(known, default=0.0):
        return f"≥{at_a_glance(largest)}"
    texts = {at_a_glance(norm) for _, norm in norms}
    return ("≤" if len(texts) > 1 else "") + at_a_glance(largest)


def marks_of(line: CallLine, num_calls: int, alarm: str, outer: frozenset[int | None]) -> Iterator[str]:
    """Yield what else there is to say of calls that are alike; what an alarm has said is not said again."""
    call = line.calls[0]
    yield f"{num_calls:,} calls" if num_calls > 1 else ""
    yield "recomputed" if call.phase == RECOMPUTED else ""
    if call.status == RAISED:
        yield "" if alarm == RAISED else f"raised {'' if call.index in outer else cut(call.error, _MAX_ERROR)}".strip()
    yield "did not return" if call.status == LEFT else ""
    got, gave = main_value(call.inputs), main_value(call.outputs)
    yield gave.relation if gave is not None and gave.relation != "new" else ""
    yield _cast(got, gave)
    yield PASSED_ON if state_of(call) == PASSED_ON else ""
    yield dead_told(line.calls)
    yield from (f"{one.path} holds {word_of(one.figures)}" for one in call.params if one.figures and not_finite([one]))
    yield from dict.fromkeys(one.note for one in call.outputs if one.note)
    yield from call.notes
    yield f"{counted(line.num_hidden, 'call')} inside" if line.num_hidden else ""


def _cast(got: Value | None, gave: Value | None) -> str:
    """Return from which dtype of floating numbers to which other it went."""
    if got is None or gave is None:
        return ""
    dtypes = [name_of(one.dtype) for one in (got, gave)]
    return " → ".join(dtypes) if dtypes[0] != dtypes[1] and all("float" in one for one in dtypes) else ""

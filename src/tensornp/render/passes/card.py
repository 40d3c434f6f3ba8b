"""The card of a followed pass: findings over the tree of its calls, as text and as static HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from tensornp.core.lowlevel.text import counted
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.passes.records import MODULE, RECOMPUTED, Call, Figures, Finding, PassRecord, SourceLine
from tensornp.passes.tree import CallTree, odd_word
from tensornp.render.layout.document import Document, Part, alarm_line, headline, section, small_print
from tensornp.render.layout.style import CODE, QUIET, SOURCE
from tensornp.render.layout.table import (
    Drawn,
    Table,
    coded,
    only,
    table_html,
    table_text,
    without_common,
    without_empty,
)
from tensornp.render.layout.words import listed
from tensornp.render.passes import rows
from tensornp.render.pictures.palette import sparkline_text
from tensornp.render.pictures.png import bars_png, img_html

if TYPE_CHECKING:
    from tensornp.passes.follow import FollowedPass

_MAX_PROBLEMS, _MAX_CLASSES = 5, 3
_MAX_TEXT, _MAX_PLACE = 400, 120
_MAX_COLUMNS = 80
"""Width of a terminal."""
ALARMS = {
    "nan": "first NaN",
    "inf": "first Inf",
    "failed": "failed",
    "overwritten": "overwrote",
    "buffer": "non-finite buffer",
}
"""Words in the tree for findings that are alarms, by kind."""
MIN_STEPS = 3
_LEAST_LOG = math.log(1.2)
"""The range of logarithms that the bars of a curve span at least."""
_MAX_STEPS, _WIDTH_PX, _HEIGHT_PX, _MAX_NAME = 24, 144, 16, 30


def pass_document(run: FollowedPass) -> Document:
    """Return the first finding with its line, others, totals and the tree; one line while the block runs."""
    if not run.is_over:
        return Document((small_print(repr(run)),))
    record, findings = run._record, run.findings
    notes = small_print(*(cut(note, _MAX_TEXT) for note in record.notes))
    if len(record.calls) < 2 and not findings:
        nothing = "no module was called here; %%follow --operators follows functions"
        nothing = "no module and no operator was called here" if record.has_operators else nothing
        return Document((small_print(nothing), notes))
    others = list(findings[:_MAX_PROBLEMS])
    verdict: list[Part] = [headline(_calm(record))]
    worst = next((one for one in others if one.kind in ALARMS), None)
    if worst is not None:
        others.remove(worst)
        verdict = [*verdict_parts(worst, record), small_print(next_command(record, worst))]
    alarms = alarms_of(findings)
    tree = CallTree(record, alarms).lines()
    every = [rows.row_of(one, record, alarms.get(one.calls[0].index, "") if one.calls else "") for one in tree]
    table, common = without_common(Table(rows.HEADINGS, tuple(every)), (rows.DTYPE,))
    table = without_empty(table, (rows.CALL, rows.SHAPE))
    dtypes = (f"outputs are {dtype}" for dtype in common if dtype)
    lines = small_print(*(_linked(record, cut(str(one), _MAX_TEXT), one.call) for one in others), *dtypes)
    return Document(
        (*verdict, lines, curves_part(record), section("tensornp-static", (fitted(table, rows.SAMPLE),)), notes)
    )


def title_of(record: PassRecord) -> str:
    """Return the expressions or classes of the outermost modules."""
    outermost = [call for call in record.children(record.calls[0]) if call.kind == MODULE]
    names = list(dict.fromkeys(call.code or call.title for call in outermost if call.phase != RECOMPUTED))
    return cut(listed(names, _MAX_CLASSES), MAX_SHOWN)


def alarms_of(findings: Sequence[Finding]) -> dict[int, str]:
    """Return the word of each call that an alarming finding is about."""
    return {one.call: ALARMS[one.kind] for one in findings[::-1] if one.call is not None and one.kind in ALARMS}


def next_command(record: PassRecord, finding: Finding) -> str:
    """Return a line with the magic that finds the operator, if modules alone were followed."""
    if not (command := operator_command(record, finding)):
        return ""
    after = "; a step has changed the weights: restore them first, unless the cell makes them" if record.steps else ""
    text = f"{command} shows the operator and its line{after}"
    return Drawn(text, f'<code style="{CODE}">{command}</code>{text.removeprefix(command)}')


def operator_command(record: PassRecord, finding: Finding) -> str:
    """Return the magic that finds the operator and its line, if modules alone were followed."""
    word = {"nan": "NaN", "inf": "Inf"}.get(finding.kind, "")
    if record.has_operators or not word:
        return ""
    inside = ""
    if finding.call is not None:
        call = record.calls[finding.call]
        is_of_weight = odd_word(call.params.values()) == word
        if odd_word(call.inputs.values()) == word or (is_of_weight and not record.steps):
            return ""
        # What a step has spoiled may come from a loss before it.
        is_inside = not is_of_weight and is_plain(call.name) and odd_word(call.outputs.values()) == word
        inside = f" --only {call.name}" if is_inside else ""
    return f"%%follow --operators{inside}"


def is_plain(name: str) -> bool:
    return name.isascii() and name.replace(".", "").replace("_", "").isalnum()


def verdict_parts(finding: Finding, record: PassRecord | None = None) -> list[Part]:
    """Return the fact as an alarm, the explanation behind it, and the line of source below."""
    source, below = finding.source, Part()
    # The block itself, call 0, is in no step.
    step = record.step_of(record.calls[finding.call]) if record is not None and finding.call else 0
    in_step = f"in step {step:,} of {len(record.steps):,}" if record is not None and step else ""
    fact, rest = finding.fact, "".join(f"; {one}" for one in (finding.explanation, in_step) if one)
    if source is not None and source.text:
        place, text = str(replace(source, text="")), cut(source.text, _MAX_TEXT)
        below = source_part(source)
        if str(source) in fact + rest:
            fact, rest = (one.replace(str(source), place) for one in (fact, rest))
            below = Part(f"    {text}", f'<div style="{SOURCE}">{escape(text)}</div>')
    rest = cut(rest, _MAX_TEXT)
    return [alarm_line(_linked(record, cut(fact, _MAX_TEXT), finding.call), Drawn(rest, coded(rest))), below]


def source_part(source: SourceLine | None) -> Part:
    """Return a line of source behind its place; nothing for None."""
    if source is None:
        return Part()
    place, text = cut(str(replace(source, text="")), _MAX_PLACE), cut(source.text, _MAX_TEXT)
    quiet = f'<span style="{QUIET}">{escape(place)}</span>&ensp;'
    html = f'<div style="{SOURCE}">{quiet}{escape(text)}</div>'
    return Part(f"    {place}  {text}".rstrip(), html)


def fitted(table: Table, picture: str) -> Part:
    """Return a table; its text has no pictures if a terminal has no room for them."""
    if not table.rows:
        return Part()
    text = table_text(table)
    if max(map(len, text.split("\n"))) > _MAX_COLUMNS:
        text = table_text(only(table, [heading for heading in table.headings if heading != picture]))
    return Part(text, table_html(table))


def _linked(record: PassRecord | None, text: str, call: int | None) -> str:
    """Mark the title of a call in a text, or the whole text, for the live tree to turn into a link."""
    if record is None or call is None:
        return Drawn(text, coded(text))
    title = cut(record.calls[call].title, MAX_SHOWN)
    before, name, after = text.partition(title) if title in text else ("", text, "")
    before, name, after = map(coded, (before, name, after))
    return Drawn(text, f'{before}<span class="tensornp-to-{call}">{name}</span>{after}')


def _calm(record: PassRecord) -> str:
    """Return that no value was NaN or infinite, or the modules that returned such values."""
    if odd := [call.title for call in record.modules() if odd_word(call.outputs.values())]:
        return f"{listed(odd, _MAX_CLASSES)} returned NaN or Inf"
    values = [value for call in record.calls[1:] for value in call.outputs.values()]
    read = [value.figures for value in values if value.figures is not None]
    back = [figures for one in record.grads if (figures := one.figures)] + [one.grad for one in values if one.grad]
    if not read or any(one.is_odd for one in read) or not all(one.is_finite for one in back):
        return ""
    masks = "" if all(one.is_finite for one in read) else " except -Inf in masks"
    num_unread = sum(value.figures is None and "float" in value.dtype for value in values)
    unread = f"; {counted(num_unread, 'value')} could not be read" if num_unread else ""
    # A gradient tells that there was a loss, even if only a function knows it; a module may have returned it.
    last = (value for call in record.children(record.calls[0]) for value in call.outputs.values())
    is_returned = any(value.grad is not None and not value.shape for value in last)
    is_loss_seen = record.has_operators or record.calls[0].outputs or is_returned or not back
    loss = "" if is_loss_seen else "; the loss was not read (--operators reads it)"
    return f"no NaN and no Inf{masks} in {counted(len(record.calls) - 1, 'call')}{unread}{loss}"


def curves_part(record: PassRecord) -> Part:
    calls: dict[int, Call] = {}
    for call in record.children(record.calls[0]):
        step = record.step_of(call)
        if call.kind == MODULE and step:
            calls[step] = call
    if len(calls) < MIN_STEPS:
        return Part()
    first = next(iter(calls.values()))
    name = cut(first.code or first.title, _MAX_NAME)
    outputs = [rows.main_value(call.outputs) for call in calls.values()]
    figures = {rows.NORM: [one.figures if one is not None else None for one in outputs]}
    figures[rows.GRAD] = [rows.gradient_of(call) for call in calls.values()]
    lines = (_line(f"{label} of {name}", [*calls], some) for label, some in figures.items() if any(some))
    return small_print(*lines)


def _line(label: str, steps: Sequence[int], figures: Sequence[Figures | None]) -> str:
    first_odd = next((i for i, one in enumerate(figures) if one is not None and not one.is_finite), None)
    # The curve ends at the first NaN or Inf.
    shown = figures if first_odd is None else figures[: first_odd + 1]
    norms = np.asarray([rows.norm_of(one) if one is not None and one.is_finite else None for one in shown], float)
    (known,) = np.nonzero(np.isfinite(norms))
    if not known.size:
        return ""
    first, last = (rows.greatest_norm([one]) for i in known[[0, -1]] if (one := shown[i]) is not None)
    text = f"{label} by step: {first}" + (f" to {last}" if last != first else "")
    text += f", first NaN or Inf in step {steps[first_odd]:,}" if first_odd is not None else ""
    # More steps than columns: the largest of some.
    groups = np.array_split(norms, min(len(norms), _MAX_STEPS))
    highest = np.asarray([np.fmax.reduce(group) for group in groups])
    logs = np.log(np.where(highest > 0, highest, math.nan))
    low, high = float(np.nanmin(logs, initial=math.inf)), float(np.nanmax(logs, initial=-math.inf))
    # Norms that are nearly equal have nearly equal bars.
    shares = np.nan_to_num((logs - (low + high) / 2) / max(high - low, _LEAST_LOG) + 0.5)
    shares[-1] = shares[-1] if first_odd is None else 1
    bars, width = sparkline_text((shares + 0.05).tolist()), _WIDTH_PX // len(shares)
    columns, num_odd = np.repeat(shares, width), 0 if first_odd is None else width
    picture = img_html(bars_png(columns, _HEIGHT_PX, num_odd), f"{text}, log scale", len(columns), _HEIGHT_PX)
    return Drawn(f"{text}  {bars}", f"{picture}&ensp;{text}, log scale")

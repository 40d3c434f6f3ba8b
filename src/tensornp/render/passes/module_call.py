"""One call of a module: what it is, over each value that it got and gave, and the weights that it had."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tensornp.core.lowlevel.text import counted, format_ordinal
from tensornp.core.tensor.dtypes import name_of
from tensornp.models.names.quoted import MAX_INSIDE, MAX_TOLD, cut, cut_inside
from tensornp.models.outline.columns import at_a_glance
from tensornp.passes.outline import not_finite
from tensornp.passes.records import CAME_WITH_THE_CALL, FORWARD, RAISED, RETURNED, ModuleCall, Value
from tensornp.passes.short import sizes_told
from tensornp.passes.verdict.dead_units import said
from tensornp.render.layout.document import Alarm, Both, Document, Lines
from tensornp.render.layout.style import HEADING
from tensornp.render.layout.table import (
    MARKS,
    Table,
    TableRow,
    name_html,
    only,
    table_html,
    table_text,
    without_common,
    without_empty,
)
from tensornp.render.passes.call_line import greatest_norm
from tensornp.render.passes.cells import between
from tensornp.render.passes.sample import sample_cell
from tensornp.render.passes.source_line import source_part

_PICTURE = "sample"
_HEADINGS = ("value", "shape", "dtype", "made by", _PICTURE, "min … max", "mean", "‖·‖", "‖grad‖", MARKS)
_ALWAYS = ("value", "shape")
_MAX_VALUES = 24
"""Values of one side that are listed."""
_MAX_CELL = 40
_MAX_COLUMNS = 80
"""Of a terminal."""


def module_call_document(call: ModuleCall) -> Document:
    """Return the name and the class over a table: a row for each input, output and weight."""
    name = cut(call.title, MAX_TOLD)
    beside = f" ({cut(call.class_name, MAX_INSIDE)})" if call.name else ""
    heading = Both(f"{name}{beside}", f'<div style="{HEADING}"><b>{name_html(name)}</b>{escape(beside)}</div>')
    ended = cut(f"{call.status} {call.error}".strip(), MAX_TOLD) if call.status != RETURNED else ""
    alarm = (Alarm(ended),) if call.status == RAISED else (Lines((ended,)),)
    table, common = without_common(Table(_HEADINGS, tuple(_rows(call))), ("dtype",))
    facts = [*_facts(call), *(f"all {dtype}" for dtype in common)]
    notes = Lines(tuple(cut(note, MAX_TOLD) for note in call.notes))
    parts = (heading, *alarm, source_part(call.source), Lines((" · ".join(facts),)))
    return Document((*parts, _fitted(without_empty(table, _ALWAYS)), notes))


def _facts(call: ModuleCall) -> Iterator[str]:
    if call.num_calls > 1:
        yield f"{format_ordinal(call.nth + 1)} of {counted(call.num_calls, 'call')}"
    yield call.phase if call.phase != FORWARD else "forward"
    if call.code and call.code != call.title:
        yield cut(call.code, MAX_INSIDE)
    if call.zero_units is not None and call.zero_units.num_zero:
        yield said(call.zero_units)
    devices = dict.fromkeys(one.device for one in (*call.inputs, *call.outputs, *call.params) if one.device)
    if list(devices) not in ([], ["cpu"]):
        yield cut(", ".join(devices), MAX_INSIDE)
    if call.thread not in ("", "MainThread"):
        yield f"thread {cut(call.thread, MAX_INSIDE)}"


def _rows(call: ModuleCall) -> Iterator[TableRow]:
    sides = (("input", call.inputs), ("output", call.outputs), ("", call.params))
    has_any = False
    for noun, values in sides:
        for place, value in enumerate(values[:_MAX_VALUES]):
            yield _row(noun, value, begins_group=has_any and not place)
        has_any = has_any or bool(values)
        if len(values) > _MAX_VALUES:
            yield TableRow((f"… {counted(len(values) - _MAX_VALUES, 'more value')}",), is_quiet=True)


def _row(noun: str, value: Value, *, begins_group: bool) -> TableRow:
    read = [value.figures] if value.figures is not None and value.figures.count else []
    one = read[0] if read and read[0].is_finite else None
    made_by = "" if noun != "input" or value.made_by == CAME_WITH_THE_CALL else value.made_by
    cells = (
        cut_inside(f"{noun} {value.path}".strip(), MAX_INSIDE),
        cut(sizes_told(value.shape), MAX_INSIDE),
        cut(name_of(value.dtype), _MAX_CELL) if value.dtype else "",
        cut_inside(made_by, _MAX_CELL),
        sample_cell(read, [value.sample]),
        between(read),
        at_a_glance(one.mean) if one is not None and one.sum == one.sum else "",
        greatest_norm([one]) if one is not None else "",
        greatest_norm([value.grad]) if value.grad is not None else "",
        cut(", ".join(filter(None, _marks(value))), MAX_TOLD),
    )
    return TableRow(cells, alarm=not_finite([value]), begins_group=begins_group)


def _marks(value: Value) -> Iterator[str]:
    yield value.relation if value.relation != "new" else ""
    yield value.note
    yield "kept" if value.tensor is not None else ""


def _fitted(table: Table) -> Both:
    """Return the table, as text without its pictures where it would not fit a terminal with them."""
    if not table.rows:
        return Both()
    text = table_text(table)
    if max(map(len, text.split("\n"))) > _MAX_COLUMNS:
        text = table_text(only(table, [heading for heading in table.headings if heading != _PICTURE]))
    return Both(text, table_html(table))

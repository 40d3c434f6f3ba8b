"""One call: its line, and a row for each input, output and weight."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tensornp.core.lowlevel.text import counted
from tensornp.models.names.quoted import MAX_INSIDE, MAX_TOLD, cut, cut_inside
from tensornp.models.outline.columns import at_a_glance
from tensornp.passes.records import FORWARD, NEW, RAISED, RETURNED, Call, Figures, Finding, PassRecord, Value
from tensornp.passes.tree import odd_word
from tensornp.passes.wording import sizes_text, zero_units_text
from tensornp.render.layout.document import Document, Part, alarm_line, small_print
from tensornp.render.layout.style import CARD, HEADING
from tensornp.render.layout.table import MARKS, Drawn, Table, TableRow, name_html, without_common, without_empty
from tensornp.render.passes.card import fitted, is_plain, source_part, verdict_parts
from tensornp.render.passes.rows import extremes, greatest_norm, sample_cell

_SAMPLE = "sample"
_HEADINGS = ("value", "shape", "dtype", "made by", _SAMPLE, "min … max", "mean", "‖·‖", "‖grad‖", MARKS)
_ALWAYS = ("value", "shape")
_MAX_VALUES, _MAX_CELL = 24, 40
"""Values of one kind that are listed, and characters of a cell."""
_NOUNS = {"inputs": "input", "outputs": "output", "params": ""}
"""Words before the paths of values."""


def finding_document(finding: Finding) -> Document:
    index = f"its call is run[{finding.call}]" if finding.call is not None else ""
    return Document((*verdict_parts(finding), small_print(index)))


def call_document(call: Call) -> Document:
    title = cut(plain_title(call), MAX_TOLD)
    heading = Part(title, f'<div style="{HEADING}"><b>{name_html(title)}</b></div>')
    return Document((heading, *_parts(call, None)))


def panel_html(call: Call, record: PassRecord) -> str:
    """Return the card without its title, with links to other calls and to kept values."""
    return Document(_parts(call, record), CARD).html()


def plain_title(call: Call) -> str:
    """Return the title of a call that stands alone: without the backticks of an operator."""
    return call.title.strip("`")


def values_of(call: Call) -> list[tuple[str, str, Value]]:
    return [(kind, path, value) for kind in _NOUNS for path, value in getattr(call, kind).items()]


def _parts(call: Call, record: PassRecord | None) -> tuple[Part, ...]:
    ended = cut(f"{call.status} {call.error}".strip(), MAX_TOLD) if call.status != RETURNED else ""
    end = alarm_line(ended) if call.status == RAISED else small_print(ended)
    table, common = without_common(Table(_HEADINGS, tuple(_rows(call, record))), ("dtype",))
    facts = [*_facts(call, record), *(f"all {dtype}" for dtype in common)]
    outputs = call.outputs.values()
    is_sampled = any(one.figures and 0 < len(one.sample) < one.figures.count and one.tensor is None for one in outputs)
    keep = f"%%follow --keep {call.name} copies all elements" if is_sampled and is_plain(call.name) else ""
    values = fitted(without_empty(table, _ALWAYS), _SAMPLE)
    return end, source_part(call.source), small_print(" · ".join(filter(None, facts))), values, small_print(keep)


def _facts(call: Call, record: PassRecord | None) -> Iterator[str]:
    yield call.phase if call.phase != FORWARD else "forward"
    yield cut(call.code, MAX_INSIDE) if call.code != call.title else ""
    if record is not None and call.parent:
        yield f"inside {cut_inside(record.calls[call.parent].title, MAX_INSIDE)}"
    yield cut(call.detail, MAX_TOLD)
    yield zero_units_text(call.zero_units) if call.zero_units is not None and call.zero_units[0] else ""
    devices = list(dict.fromkeys(value.device for _, _, value in values_of(call) if value.device))
    yield cut(", ".join(devices), MAX_INSIDE) if devices != ["cpu"] else ""


def _rows(call: Call, record: PassRecord | None) -> Iterator[TableRow]:
    grads = {one.name: one.figures for one in record.grads} if record is not None else {}
    number = 0
    for kind, noun in _NOUNS.items():
        values: dict[str, Value] = getattr(call, kind)
        for i, (path, value) in enumerate(list(values.items())[:_MAX_VALUES]):
            name = cut_inside(f"{noun} {path}".strip(), MAX_INSIDE)
            if record is not None and value.tensor is not None:
                name = _link(name, "kept", number + i, "Walk through the values")
            grad = value.grad or (grads.get(f"{call.name}.{path}".lstrip(".")) if kind == "params" else None)
            maker = ""
            if value.maker is not None and value.maker != call.index:
                maker = f"call {value.maker:,}"
                if record is not None:
                    title = cut_inside(plain_title(record.calls[value.maker]), _MAX_CELL)
                    maker = _link(title, "to", value.maker, "Show this call")
            yield _row(name, value, grad, maker, begins_group=number > 0 == i)
        if len(values) > _MAX_VALUES:
            yield TableRow((f"… {counted(len(values) - _MAX_VALUES, 'more value')}",), is_quiet=True)
        number += len(values)


def _row(name: str, value: Value, grad: Figures | None, maker: str, *, begins_group: bool) -> TableRow:
    figures = [value.figures] if value.figures is not None and value.figures.count else []
    is_finite = bool(figures) and figures[0].is_finite
    marks = value.relation if value.relation != NEW else "", value.note, "kept" if value.tensor is not None else ""
    cells = (
        name,
        cut(sizes_text(value.shape), MAX_INSIDE),
        cut(value.dtype, _MAX_CELL),
        maker,
        sample_cell(figures, [value.sample]),
        extremes(figures),
        at_a_glance(figures[0].mean) if is_finite and figures[0].mean == figures[0].mean else "",
        greatest_norm(figures) if is_finite else "",
        greatest_norm([grad]) if grad is not None else "",
        cut(", ".join(filter(None, marks)), MAX_TOLD),
    )
    return TableRow(cells, alarm=odd_word([value]), begins_group=begins_group)


def _link(text: str, kind: str, number: int, title: str) -> Drawn:
    """Return a cell that is a button of the live panel."""
    attributes = f'type="button" class="tensornp-copy tensornp-link" data-{kind}="{number}" title="{title}"'
    return Drawn(text, f"<button {attributes}>{escape(text)}</button>")

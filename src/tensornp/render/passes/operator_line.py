"""Operators as rows of a table.

Around the one that made the first NaN, or the lines of a program without modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import name_of
from tensornp.models.names.quoted import cut
from tensornp.passes.outline import MAX_LINES
from tensornp.passes.records import FORWARD, RAISED, OperatorCall, Origin, PassRecord
from tensornp.passes.verdict.operator_origin import shown
from tensornp.render.layout.table import MARKS, Table, TableRow, without_empty
from tensornp.render.passes.cells import between, main_value, shapes

HEADINGS = ("operator", "min … max", MARKS, "in → out", "dtype", "line")
_ALWAYS = ("operator", "in → out")
_BEFORE, _AFTER = 4, 3
_MAX_NAMES, _MAX_LINE, _MAX_TEXT = 60, 44, 200


def operator_table(record: PassRecord, origin: Origin | None) -> Table:
    """Return the operators around the one that produced the first NaN."""
    index = origin.operator_index if origin is not None else None
    if index is not None:
        return inside_table(record.operators[max(index - _BEFORE, 0) : index + _AFTER + 1], index)
    if record.calls:
        rows = []
    else:
        rows = list(_by_line(record.operators))
    return without_empty(Table(HEADINGS, tuple(rows)), _ALWAYS)


def inside_table(operators: Sequence[OperatorCall], born: int | None) -> Table:
    """Return some operators, a row each; in that of the index `born`, a NaN was born."""
    rows = tuple(_row([one], "first" if one.index == born else "") for one in operators)
    return without_empty(Table(HEADINGS, rows), _ALWAYS)


def _by_line(operators: Sequence[OperatorCall]) -> Iterator[TableRow]:
    """Yield a row for each line of the program that calls operators in turn."""
    groups = [list(group) for _, group in groupby(operators, lambda one: (one.source, one.phase))]
    for group in groups[:MAX_LINES]:
        yield _row(group, "")
    if len(groups) > MAX_LINES:
        more = sum(map(len, groups[MAX_LINES:]))
        yield TableRow((f"… {counted(more, 'more operator')}",), is_quiet=True)


def _row(group: Sequence[OperatorCall], alarm: str) -> TableRow:
    first, last = group[0], group[-1]
    gave = main_value(last.outputs)
    cells = (
        cut(", ".join(map(shown, group)), _MAX_NAMES),
        between([gave.figures] if gave is not None and gave.figures is not None else []),
        cut(", ".join(dict.fromkeys(mark for one in group for mark in _marks(one))), _MAX_TEXT),
        shapes(main_value(first.inputs), gave),
        name_of(gave.dtype) if gave is not None else "",
        cut(str(first.source), _MAX_LINE) if first.source is not None else "",
    )
    return TableRow(cells, alarm=alarm)


def _marks(one: OperatorCall) -> Iterator[str]:
    """Yield what else there is to say of an operator."""
    if one.phase != FORWARD:
        yield one.phase
    if one.node:
        yield one.node
    if one.status == RAISED:
        yield f"raised {one.error}"
    if one.overwrote:
        yield "in place"
    if one.asked_for:
        yield f"{one.asked_for} was asked for"
    yield from one.notes

"""Two passes side by side: where they began to differ, over the calls that did."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensornp.core.lowlevel.text import counted, format_number
from tensornp.models.names.quoted import MAX_INSIDE, cut, cut_inside
from tensornp.passes.verdict.compared_values import FIGURES, Difference
from tensornp.passes.verdict.comparison import CallDifference, PassComparison, dropped_told, unread_told
from tensornp.passes.verdict.wording import named
from tensornp.render.layout.document import Alarm, Document, Lines, headed
from tensornp.render.layout.table import FIRST, MARKS, SECOND, Table, TableRow, without_empty
from tensornp.render.passes.cells import between
from tensornp.render.passes.source_line import clauses_of

_HEADINGS = ("differs", FIRST, SECOND, "relative", MARKS)
_ALWAYS = ("differs",)
_MAX_ROWS = 25
_MAX_TEXT = 400
_READ = "shapes, dtypes, the least and the greatest element, sum and norm were compared; single elements were not"


def pass_comparison_document(found: PassComparison, names: tuple[str, str] = ("the first", "the second")) -> Document:
    """Return the verdict over what is told, and a row for each call, weight and gradient that differs."""
    heading = headed([(cut(name, MAX_INSIDE), "") for name in names], cut(found.verdict, _MAX_TEXT))
    said = [cut(text, _MAX_TEXT) for text in found.problems]
    alarm: tuple[Alarm, ...] = ()
    if found.calls:
        alarm = (Alarm(*clauses_of(said.pop(0))),)
    # Else the verdict has said so.
    unknown = (unread_told(found.num_unread), dropped_told(found.num_dropped)) if found.problems else ()
    totals = [f"{counted(found.num_calls, 'call')} in both", *filter(None, unknown), _READ]
    table = without_empty(Table(_HEADINGS, tuple(_rows(found))), _ALWAYS)
    return Document((heading, *alarm, Lines((*said, " · ".join(totals))), table))


def _rows(found: PassComparison) -> Iterator[TableRow]:
    calls = [_call_row(one, is_first=one is found.first) for one in found.calls]
    yield from _some(calls, "call", begins_group=False)
    weights, grads = found.weights or {}, found.grads or {}
    when = {name: "before the pass" if name in found.weights_before else "when first read" for name in weights}
    yield from _some([_row(name, one, when[name]) for name, one in weights.items()], "weight")
    # Where the forward differs, so does what comes back.
    told = [*((named(one.call), one.difference, "came back") for one in found.gradients)]
    for several in (told, [(name, one, "gradient") for name, one in grads.items()]):
        yield from _some([_row(*one, is_quiet=bool(found.calls)) for one in several], "gradient")


def _some(rows: Sequence[TableRow], noun: str, *, begins_group: bool = True) -> Iterator[TableRow]:
    yield from (replace(row, begins_group=begins_group and not i) for i, row in enumerate(rows[:_MAX_ROWS]))
    if len(rows) > _MAX_ROWS:
        yield TableRow((f"… {counted(len(rows) - _MAX_ROWS, f'more {noun}')}",), is_quiet=True)


def _call_row(one: CallDifference, *, is_first: bool) -> TableRow:
    alarm = "first difference" if is_first else ""
    other = f"{one.other_class} in the second" if one.other_class else ""
    mark = "its inputs were equal" if one.is_born_here and not is_first else ""
    # What got something else gives something else.
    is_quiet = not is_first and (one.inputs_equal is False or one.differs_inside)
    return _row(named(one.call), one.difference, ", ".join(filter(None, (other, mark))), alarm, is_quiet=is_quiet)


def _row(name: str, one: Difference, mark: str, alarm: str = "", *, is_quiet: bool = False) -> TableRow:
    sides = [between([figures]) if figures is not None and figures.count else "" for figures in one.figures]
    relative = format_number(one.relative, 2) if not math.isnan(one.relative) else ""
    told = one.told if one.kind != FIGURES else ""
    marks = cut(", ".join(filter(None, (told, mark))), _MAX_TEXT)
    return TableRow((cut_inside(name, MAX_INSIDE), *sides, relative, marks), alarm=alarm, is_quiet=is_quiet)

"""Two passes side by side: the first call that differs, over a row for each difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensornp.core.lowlevel.text import counted
from tensornp.models.names.quoted import MAX_INSIDE, cut, cut_inside
from tensornp.passes.compare import Difference, PassComparison
from tensornp.render.layout.document import Document, alarm_line, headed, small_print
from tensornp.render.layout.table import FIRST, MARKS, SECOND, Table, TableRow, without_empty
from tensornp.render.passes.rows import extremes

_HEADINGS = ("differs", FIRST, SECOND, MARKS)
_MAX_ROWS, _MAX_TEXT = 25, 400
_COMPARED = "compared: shapes, dtypes, minima, maxima, sums, norms and samples; not every element"


def pass_comparison_document(found: PassComparison, names: tuple[str, str] = ("the first", "the second")) -> Document:
    heading = headed([(cut(name, MAX_INSIDE), "") for name in names], cut(found.verdict, _MAX_TEXT))
    problems = [cut(text, _MAX_TEXT) for text in found.problems]
    alarm = (alarm_line(problems.pop(0)),) if found.calls else ()
    totals = f"{counted(found.num_calls, 'call')} in both · {_COMPARED}"
    table = without_empty(Table(_HEADINGS, tuple(_rows(found))), ("differs",))
    return Document((heading, *alarm, small_print(*problems, totals), table))


def _rows(found: PassComparison) -> Iterator[TableRow]:
    calls = []
    for one in found.calls:
        is_first = one is found.first
        # Other inputs give other outputs.
        is_quiet = not is_first and one.inputs_equal is False
        mark = "its inputs are equal" if one.inputs_equal and not is_first else ""
        alarm = "first difference" if is_first else ""
        calls.append(_row(one.call.title, one.difference, mark, alarm, is_quiet=is_quiet))
    yield from _some(calls, "call")
    yield from _some([_row(name, one, "when first read") for name, one in found.weights.items()], "weight")
    grads = [_row(name, one, "gradient", is_quiet=bool(calls)) for name, one in found.grads.items()]
    yield from _some(grads, "gradient")


def _some(rows: Sequence[TableRow], noun: str) -> Iterator[TableRow]:
    yield from (row._replace(begins_group=not i) for i, row in enumerate(rows[:_MAX_ROWS]))
    if len(rows) > _MAX_ROWS:
        yield TableRow((f"… {counted(len(rows) - _MAX_ROWS, f'more {noun}')}",), is_quiet=True)


def _row(name: str, one: Difference, mark: str, alarm: str = "", *, is_quiet: bool = False) -> TableRow:
    sides = [extremes([figures]) if figures is not None else "" for figures in one.figures]
    marks = cut(", ".join(filter(None, (one.text, mark))), _MAX_TEXT)
    return TableRow((cut_inside(name, MAX_INSIDE), *sides, marks), alarm=alarm, is_quiet=is_quiet)

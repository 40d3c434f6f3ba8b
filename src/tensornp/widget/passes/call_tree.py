"""Serve lines of the tree of calls to a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted, legible
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import cut
from tensornp.models.names.search import is_expression, none_fits
from tensornp.models.outline.choose import Asked, searched
from tensornp.models.outline.fold import Branch
from tensornp.passes.records import Call, PassRecord
from tensornp.passes.tree import PASSED_ON, CallLine, CallTree, SeenBranch, state_of
from tensornp.render.layout.table import MARKS
from tensornp.render.passes import rows
from tensornp.widget.tree_requests import NONSENSE, asked_by
from tensornp.widget.weight_lines import picture_of

_MAX_TEXT = 400


class _Column(NamedTuple):
    """A column; `rank` is its priority for space, and `order` returns a sort key."""

    heading: str
    width: int
    rank: int
    order: Callable[[Call], Any] | None = None
    is_right: bool = True


def _norm(call: Call) -> float | None:
    value = rows.main_value(call.outputs)
    return rows.norm_of(value.figures) if value is not None else None


def _largest(call: Call) -> float | None:
    value = rows.main_value(call.outputs)
    figures = value.figures if value is not None else None
    return max(abs(figures.min), abs(figures.max)) if figures is not None and figures.count else None


_COLUMNS = {
    "name": _Column(rows.CALL, 40, 0, is_right=False),
    "shape": _Column(rows.SHAPES, 30, 1, is_right=False),
    "dtype": _Column(rows.DTYPE, 10, 6, is_right=False),
    "figures": _Column(rows.SAMPLE, 10, 4, is_right=False),
    "extremes": _Column(rows.EXTREMES, 17, 3, _largest),
    "norm": _Column(rows.NORM, 8, 0, _norm),
    "grad": _Column(rows.GRAD, 8, 2, lambda call: rows.norm_of(rows.gradient_of(call))),
    "marks": _Column(MARKS, 16, 5, is_right=False),
}
_MARKED = ("norm", "grad")
"""Columns with bars next to their numbers."""


class LiveCalls:
    """The lines of a pass.

    `alarms` maps the index of a call to a text, and `code` is the expression of the pass.
    """

    def __init__(self, record: PassRecord, alarms: Mapping[int, str], code: str = "") -> None:
        self._record, self._calls, self._alarms, self._code = record, record.calls, alarms, code
        self._tree = CallTree(record, alarms)
        self._opened = self._tree.opened(has_open_repeats=False)
        self._titles = [call.title for call in record.calls[1:]]
        self._greatest = {
            column: max(filter(math.isfinite, _norms(column, self._calls)), default=0.0) for column in _MARKED
        }
        self._columns = _columns(record)

    def asked(self, request: Mapping[str, Any]) -> Asked:
        """Return the requested view."""
        return asked_by(request, [name for name, column in _COLUMNS.items() if column.order is not None], ())

    def num_lines(self, asked: Asked) -> int:
        """Return how many lines there are."""
        return len(self._listed(asked) if asked.is_list else self._seen(asked))

    def lines(self, asked: Asked, first: int, count: int) -> list[dict[str, Any]]:
        """Return some of them."""
        if not asked.is_list:
            seen = self._seen(asked)
            return [self._line(one, asked) for one in seen[first : first + count]]
        calls = self._listed(asked)
        branches = [Branch(call.title, (call,)) for call in calls[first : first + count]]
        seen = [SeenBranch(one, -1, 0, first + i + 1, len(calls)) for i, one in enumerate(branches)]
        return [self._line(one, asked) for one in seen]

    def revealed(self, asked: Asked, number: int) -> tuple[Asked, int]:
        """Return the view with the parents of a call open, and the call's line."""
        if not 0 < number < len(self._calls):
            raise BadRequestError(NONSENSE)
        if asked.is_list:
            return asked, next((i for i, call in enumerate(self._listed(asked)) if call.index == number), -1)
        closed = self._tree.around(number) - (self._opened ^ asked.toggled)
        asked = replace(asked, toggled=asked.toggled ^ closed)
        entries = (self._calls[number],)
        return asked, next((i for i, one in enumerate(self._seen(asked)) if one.branch.entries == entries), -1)

    def said(self, asked: Asked) -> dict[str, Any]:
        """Return facts about all lines."""
        total, marked = self.num_lines(asked), _marked(asked)
        return {
            "nothing": "" if total else self._nothing(asked.search),
            "marked": marked,
            "bar": f"from 0 to the greatest {_COLUMNS[marked].heading} of all calls",
            "text": f"{total:,} of {counted(len(self._titles), 'call')}" if asked.is_list else "",
            "code": "" if asked.is_list else self._code,
            "columns": self._columns,
            "choices": [],
        }

    def _nothing(self, search: str) -> str:
        return none_fits(search, self._titles) if search and not is_expression(search) else "no call fits"

    def _seen(self, asked: Asked) -> list[SeenBranch]:
        return self._tree.seen(self._opened ^ asked.toggled)

    def _listed(self, asked: Asked) -> list[Call]:
        """Return the calls that a search finds, in the requested order; unknown numbers come last."""
        calls = self._calls[1:]
        if asked.search:
            calls = [calls[i] for i in searched(asked.search, self._titles)]
        order = _COLUMNS[asked.sort].order if asked.sort else None
        if order is None:
            return calls
        keys = {call.index: order(call) for call in calls}
        known = [call for call in calls if keys[call.index] is not None]
        # NaN is greater than all numbers.
        known.sort(key=lambda call: (keys[call.index] != keys[call.index], keys[call.index]), reverse=asked.descending)
        return [*known, *(call for call in calls if keys[call.index] is None)]

    def _line(self, one: SeenBranch, asked: Asked) -> dict[str, Any]:
        branch, own = one.branch, self._tree.id_of(one.branch)
        line, first = CallLine(branch.label, branch.entries), branch.entries[0]
        has_below = not asked.is_list and bool(self._tree.below(branch))
        is_open = has_below and own in self._opened ^ asked.toggled
        number = own if len(branch.entries) == 1 else -1
        alarm = self._alarms.get(number, "")
        is_quiet, marked = state_of(first) == PASSED_ON and not alarm, _marked(asked)
        label, marks = cut(branch.label, _MAX_TEXT), rows.marks_of(line, self._record, alarm)
        told = rows.cells_of(line)
        cells = {name: told.get(column.heading, "") for name, column in _COLUMNS.items()}
        source = legible(str(first.source)) if first.source is not None else ""
        return {
            "cells": cells | {"name": label, "marks": marks},
            "branch": own if has_below else -1, "parent": one.parent, "level": one.level + 1,
            "position": one.position, "size": one.size, "open": is_open, "number": number,
            "picture": picture_of(rows.histogram_of(*rows.samples_of(line))),
            "titles": {},
            "mark": None if is_quiet else self._bar(marked, branch.entries),
            "wholeName": cut(first.title, _MAX_TEXT) if number >= 0 else label,
            # Marks may have no room.
            "title": "\n".join(filter(None, [source, marks])),
            "alarm": {"text": alarm, "number": number, "goal": ""} if alarm else None, "odd": None, "isQuiet": is_quiet,
            "className": rows.beside_of(line),
        }  # fmt: skip

    def _bar(self, column: str, calls: Sequence[Call]) -> tuple[float, float] | None:
        """Return the greatest norm relative to that of all calls; None if it is not finite."""
        norms, greatest = _norms(column, calls), self._greatest[column]
        is_finite = bool(norms) and all(map(math.isfinite, norms)) and greatest > 0
        return (0.0, max(norms) / greatest) if is_finite else None


def _marked(asked: Asked) -> str:
    """Return the column with bars: the sorted one if it can have bars, else norms."""
    return asked.sort if asked.sort in _MARKED else "norm"


def _norms(column: str, calls: Sequence[Call]) -> list[float]:
    order = _COLUMNS[column].order
    return [norm for call in calls if order is not None and (norm := order(call)) is not None]


def _columns(record: PassRecord) -> list[dict[str, Any]]:
    """Return the columns, gradients if some came, and dtypes if there are several."""
    outputs = [value for call in record.calls[1:] for value in call.outputs.values()]
    has_grads, has_dtypes = any(one.grad is not None for one in outputs), len({one.dtype for one in outputs}) > 1
    is_told = {"grad": has_grads, "dtype": has_dtypes}
    return [
        {
            "name": name, "heading": column.heading, "isRight": column.is_right, "isLargeFirst": column.is_right,
            "isSortable": column.order is not None, "rank": column.rank, "isFixed": name == "name",
            "width": column.width, "hasMark": name == "norm",
        }
        for name, column in _COLUMNS.items()
        if is_told.get(name, True)
    ]  # fmt: skip

"""The calls of a pass as a tree that a page asks for lines of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted, format_ordinal, legible
from tensornp.core.tensor.dtypes import name_of
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import cut
from tensornp.models.names.search import is_expression, none_fits
from tensornp.models.outline.choose import Asked
from tensornp.models.outline.columns import at_a_glance
from tensornp.passes.opened import OpenedCalls, OpenedLine
from tensornp.passes.outline import PASSED_ON, CallLine, not_finite, state_of
from tensornp.passes.records import RETURNED, Figures, ModuleCall, PassRecord, Value
from tensornp.render.passes.call_line import all_shapes, greatest_norm, least_norm, marks_of, worst_figures
from tensornp.render.passes.cells import main_value, shapes
from tensornp.render.passes.sample import histogram_of
from tensornp.widget.tree_requests import NONSENSE, asked_by
from tensornp.widget.weight_lines import picture_of

NAME, SHAPE, DTYPE, PICTURE, MIN, MAX, NORM, GRAD, MARKS = (
    "name", "shape", "dtype", "figures", "min", "max", "norm", "grad", "marks",
)  # fmt: skip
_MARKED = (NORM, GRAD)
"""Columns with bars beside their figures."""
_MAX_NAME, _MAX_SHAPE, _MAX_TEXT = 44, 28, 400
_INDENT, _BESIDE, _ARROW = 2, 14, 2
"""Characters that a level, an alarm or numbers in a name, and the arrow of a heading take."""
_DIGITS = re.compile(r"(\d+)")


class _Column(NamedTuple):
    """A column; `rank` is its priority for space, and `order` returns a sort key."""

    heading: str
    width: int
    rank: int
    order: Callable[[ModuleCall], Any] | None = None
    is_right: bool = False
    has_large_first: bool = False


def _figure(of: Callable[[Value], float | None]) -> Callable[[ModuleCall], Any]:
    """Return a sort key from a number of a call's main output; NaN is the greatest."""

    def order(call: ModuleCall) -> tuple[bool, float] | None:
        value = main_value(call.outputs)
        number = of(value) if value is not None else None
        return None if number is None else (math.isnan(number), 0.0 if math.isnan(number) else number)

    return order


def _norm(figures: Figures | None) -> float | None:
    """Return a norm or its lower bound, None without statistics."""
    return least_norm(figures) if figures is not None else None


def _numel(call: ModuleCall) -> int | None:
    value = main_value(call.outputs)
    return math.prod(value.shape) if value is not None and all(type(size) is int for size in value.shape) else None


def _dtype(call: ModuleCall) -> str | None:
    value = main_value(call.outputs)
    return name_of(value.dtype) if value is not None else None


def _title(call: ModuleCall) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in _DIGITS.split(call.title)]


_COLUMNS = {
    NAME: _Column("call", _MAX_NAME, 0, _title),
    SHAPE: _Column("in → out", _MAX_SHAPE, 1, _numel, has_large_first=True),
    DTYPE: _Column("dtype", 10, 6, _dtype),
    PICTURE: _Column("sample", 10, 4),
    MIN: _Column("min", 8, 3, _figure(lambda value: value.min), is_right=True),
    MAX: _Column("max", 8, 3, _figure(lambda value: value.max), is_right=True, has_large_first=True),
    NORM: _Column("‖out‖", 8, 0, _figure(lambda value: _norm(value.figures)), is_right=True, has_large_first=True),
    GRAD: _Column("‖grad‖", 8, 2, _figure(lambda value: _norm(value.grad)), is_right=True, has_large_first=True),
    MARKS: _Column("marks", 16, 5),
}
_CHOICES: dict[str, Callable[[ModuleCall], str]] = {
    "class": lambda call: cut(call.class_name, _MAX_TEXT),
    "phase": lambda call: call.phase,
    "state": lambda call: not_finite(call.outputs) or (call.status if call.status != RETURNED else ""),
}
"""By what calls are chosen, from a list of all that there is of it."""


class CallTree:
    """The lines of a pass.

    `alarms` maps the index of a call to a text, `code` is the expression of the pass, and an error passed through the
    `outer` calls.
    """

    def __init__(
        self, record: PassRecord, alarms: Mapping[int, str], outer: frozenset[int | None], code: str = ""
    ) -> None:
        self._calls, self._alarms, self._outer, self._code = record.calls, alarms, outer, code
        self._opened = OpenedCalls(self._calls, alarms, _order, _passes)
        self._alarm_below: dict[int, int] = {}
        for index in alarms:
            above = self._calls[index].parent
            while above is not None:
                self._alarm_below.setdefault(above, index)
                above = self._calls[above].parent
        self._greatest = {column: _greatest(column, self._calls) for column in _MARKED}
        self._choices = _choices(self._calls)
        self._columns = list(_columns(self._calls, self._outer))

    def asked(self, request: Mapping[str, Any]) -> Asked:
        """Return the requested view."""
        sortable = [name for name, column in _COLUMNS.items() if column.order is not None]
        return asked_by(request, sortable, _CHOICES)

    def num_lines(self, asked: Asked) -> int:
        """Return how many lines there are."""
        return self._opened.num_lines(asked)

    def lines(self, asked: Asked, first: int, count: int) -> list[dict[str, Any]]:
        """Return some of them."""
        marked = _marked(asked)
        return [self._line(line, marked) for line in self._opened.lines(asked, first, count)]

    def revealed(self, asked: Asked, number: int) -> tuple[Asked, int]:
        """Return the view with the parents of a call open, and the call's line."""
        if not 0 <= number < len(self._calls):
            raise BadRequestError(NONSENSE)
        return self._opened.revealed(asked, number)

    def said(self, asked: Asked) -> dict[str, Any]:
        """Return facts about all lines."""
        total, marked = self.num_lines(asked), _marked(asked)
        return {
            "nothing": "" if total else self._nothing(asked),
            "marked": marked,
            "bar": f"from 0 to the greatest {_COLUMNS[marked].heading} of all calls",
            "text": f"{total:,} of {counted(len(self._calls), 'call')}" if asked.is_list else "",
            "code": "" if asked.is_list else self._code,
            "columns": self._columns,
            "choices": self._choices,
        }

    def _nothing(self, asked: Asked) -> str:
        """Return a message that nothing is listed, with a suggestion."""
        if not asked.search or asked.filters or is_expression(asked.search):
            return "no call fits"
        return none_fits(asked.search, [call.title for call in self._calls])

    def _line(self, opened: OpenedLine, marked: str) -> dict[str, Any]:
        line = opened.line
        first = line.calls[0]
        outputs = [value for call in line.calls if (value := main_value(call.outputs)) is not None]
        given = [value.figures for value in outputs if value.figures is not None]
        back = [one for call in line.calls if (one := worst_figures(value.grad for value in call.outputs)) is not None]
        is_quiet, figures = state_of(first) == PASSED_ON, {NORM: given, GRAD: back}
        label, marks = cut(line.label, _MAX_TEXT), cut(", ".join(self._marks(opened)), _MAX_TEXT)
        source = legible(str(first.source)) if first.source is not None else ""
        return {
            "cells": {
                NAME: label,
                SHAPE: shapes(main_value(first.inputs), main_value(first.outputs)),
                DTYPE: name_of(outputs[0].dtype) if outputs else "",
                PICTURE: "",
                MIN: _extreme([one.min for one in given], min),
                MAX: _extreme([one.max for one in given], max),
                NORM: greatest_norm(given),
                GRAD: greatest_norm(back),
                MARKS: marks,
            },
            "branch": opened.branch, "parent": opened.parent, "level": opened.level, "position": opened.position,
            "size": opened.size, "open": opened.is_open, "number": opened.number,
            "picture": picture_of(histogram_of(given, [value.sample for value in outputs])),
            "titles": {SHAPE: all_shapes(first)},
            "mark": None if is_quiet else self._bar(marked, figures[marked]),
            "wholeName": cut(first.name, _MAX_TEXT) if opened.number >= 0 and first.name else label,
            # Marks may have no room.
            "title": "\n".join(filter(None, [source, marks])),
            "alarm": self._alarm(opened), "odd": None, "isQuiet": is_quiet,
            "className": cut(first.class_name, _MAX_TEXT) if first.class_name != line.label else "",
        }  # fmt: skip

    def _marks(self, opened: OpenedLine) -> list[str]:
        """Return further texts of a line."""
        calls = opened.line.calls
        num_calls = len(calls) // max(len({call.name for call in calls}), 1)
        nth = f"{format_ordinal(calls[0].nth + 1)} call" if opened.number >= 0 and calls[0].nth else ""
        alarm = self._alarms.get(calls[0].index, "")
        return [one for one in (nth, *marks_of(opened.line, num_calls, alarm, self._outer)) if one]

    def _alarm(self, opened: OpenedLine) -> dict[str, Any] | None:
        """Return the alarm of a call or below a closed one, and the number of its call."""
        own = opened.number
        if own in self._alarms:
            return {"text": self._alarms[own], "number": own, "goal": ""}
        inside = self._alarm_below.get(own) if opened.branch >= 0 and not opened.is_open else None
        if inside is None:
            return None
        name = self._calls[inside].title.removeprefix(f"{self._calls[own].name}.")
        return {"text": f"{self._alarms[inside]} in {legible(name)}", "number": inside, "goal": ""}

    def _bar(self, column: str, figures: Sequence[Figures]) -> tuple[float, float] | None:
        """Return a norm relative to the greatest of all calls, None if not finite."""
        norms, greatest = [one.norm for one in figures], self._greatest[column]
        if not norms or not greatest or not all(map(math.isfinite, norms)):
            return None
        return 0.0, min(max(norms) / greatest, 1.0)


def _order(column: str, call: ModuleCall) -> Any:
    order = _COLUMNS[column].order
    assert order is not None
    return order(call)


def _passes(column: str, wanted: str, call: ModuleCall) -> bool:
    return _CHOICES[column](call) == wanted


def _marked(asked: Asked) -> str:
    """Return the column with bars: the sorted one if it can have bars, else norms."""
    return asked.sort if asked.sort in _MARKED else NORM


def _extreme(values: Sequence[float], of: Callable[[Sequence[float]], float]) -> str:
    if not values:
        return ""
    return "nan" if any(map(math.isnan, values)) else at_a_glance(of(values))


def _greatest(column: str, calls: Sequence[ModuleCall]) -> float:
    """Return the greatest finite norm, 0 without one."""
    order = _COLUMNS[column].order
    assert order is not None
    found = (key for call in calls if (key := order(call)) is not None)
    return max((number for is_nan, number in found if not is_nan and math.isfinite(number)), default=0.0)


def _choices(calls: Sequence[ModuleCall]) -> list[dict[str, Any]]:
    """Return the values of each filter with more than one."""
    found = {column: sorted({of(call) for call in calls}) for column, of in _CHOICES.items()}
    return [
        {"column": column, "label": column, "values": values}
        for column, all_values in found.items()
        if len(all_values) > 1 and (values := [value for value in all_values if value])
    ]


def _columns(calls: Sequence[ModuleCall], outer: frozenset[int | None]) -> list[dict[str, Any]]:
    """Return the columns with content; dtype only if there are several."""
    outputs = [value for call in calls for value in call.outputs]
    is_said = {
        DTYPE: len({value.dtype for value in outputs}) > 1,
        PICTURE: any(value.sample for value in outputs),
        GRAD: any(value.grad is not None for value in outputs),
        MARKS: any(any(marks_of(CallLine("", (call,), 0), 1, "", outer)) for call in calls),
    } | dict.fromkeys((MIN, MAX, NORM), any(value.figures for value in outputs))
    lengths = (len(shapes(main_value(call.inputs), main_value(call.outputs))) for call in calls)
    names = (_INDENT * call.depth + len(call.title.rpartition(".")[2]) + len(call.class_name) for call in calls)
    widths = {
        NAME: min(_BESIDE + max(names, default=0), _MAX_NAME),
        SHAPE: min(max([len(_COLUMNS[SHAPE].heading) + _ARROW, *lengths]), _MAX_SHAPE),
    }
    return [
        {
            "name": name, "heading": column.heading, "isRight": column.is_right,
            "isLargeFirst": column.has_large_first, "isSortable": column.order is not None,
            "rank": column.rank, "isFixed": name == NAME, "width": widths.get(name, column.width),
            "hasMark": name == NORM,
        }
        for name, column in _COLUMNS.items()
        if is_said.get(name, True)
    ]  # fmt: skip

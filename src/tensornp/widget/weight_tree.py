"""Serve the tree of weights with the results of scans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.core.values.stats.fast import is_to_compile
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.search import is_expression, none_fits
from tensornp.models.optimizers import number_told
from tensornp.models.outline.choose import (
    FOUND_STATES,
    INFINITY_STATE,
    NAN_STATE,
    SUMMED,
    UNREAD,
    Asked,
    filters,
)
from tensornp.models.outline.columns import GRAD, columns, sortable
from tensornp.models.outline.outline import FoundOrder, Outline
from tensornp.models.outline.spreads import Spreads
from tensornp.render.layout.words import cost_of_scan
from tensornp.widget.tree_requests import NONSENSE, asked_by
from tensornp.widget.weight_lines import (
    Found,
    OrderOf,
    Told,
    choice_data,
    column_data,
    kinds_of,
    line_data,
    marked_column,
    size_choice,
    widths_of,
)

SOUGHT = {"nan": NAN_STATE} | dict.fromkeys(("inf", "-inf", "+inf", "infinity", "infinite"), INFINITY_STATE)
"""What is no name, and may be meant by it."""
_IS_SIZE = re.compile(r"[0-9]{1,18}")


class WeightTree:
    """The lines of weights; `opened` gives the expression of the explorer.

    Attributes
    ----------
    found : dict of str to Found
        What scans have found, by the name of a weight.
    """

    def __init__(self, weights: Sequence[WeightEntry], classes: Mapping[str, str], opened: Callable[[], str]) -> None:
        self._weights, self._opened = weights, opened
        self._number = number_told(weights)
        self.outline = Outline(weights, classes)
        self.found: dict[str, Found] = {}
        self._widths = widths_of(self.outline, ())
        self._spreads: Spreads | None = None
        self._figures: set[str] = set()
        # Of what stands beside a name.
        self._alarm_width = 0
        self._states: dict[str, int] = {}

    def learn(self, found: Mapping[str, Found]) -> None:
        """Add the results of a scan to those of other weights."""
        self.found |= found
        figures = {name: one.figures for name, one in self.found.items()}
        self._widths = widths_of(self.outline, figures.values())
        self._figures = set().union(*figures.values())
        odd = (one for one in self.found.values() if one.alarms or one.findings)
        self._alarm_width = max((len(one.alarm) for one in odd), default=0)
        self._states = self._count_states()
        self._spreads = Spreads(self.outline, figures, kinds_of(self.found))
        self.outline.forget()

    @property
    def order(self) -> FoundOrder | None:
        """Return the order and states from a scan, None before its first result."""
        return OrderOf(self.found) if self.found else None

    def asked(self, request: Mapping[str, Any]) -> Asked:
        """Return the requested view."""
        asked = asked_by(request, sortable(), filters(), SUMMED)
        if not all(_IS_SIZE.fullmatch(value) for column, value in asked.filters if column == "bytes"):
            raise BadRequestError(NONSENSE)
        return asked

    def num_lines(self, asked: Asked) -> int:
        """Return how many lines there are."""
        return self.outline.num_lines(asked, self.order)

    def lines(self, asked: Asked, first: int, count: int) -> list[dict[str, Any]]:
        """Return some of them."""
        outline = self.outline
        told = Told(outline.number_of, self.found, self._spreads, marked_column(asked.sort), outline.share_of)
        return [line_data(line, told) for line in outline.lines(asked, first, count, self.order)]

    def revealed(self, asked: Asked, number: int) -> tuple[Asked, int]:
        """Return the view with the parents of a weight open, and the weight's line."""
        if not 0 <= number < len(self._weights):
            raise BadRequestError(NONSENSE)
        return self.outline.revealed(asked, number, self.order)

    def said(self, asked: Asked) -> dict[str, Any]:
        """Return facts about all lines."""
        total, marked = self.num_lines(asked), marked_column(asked.sort)
        return {
            "nothing": "" if total else self._nothing(asked),
            "instead": None if total else self._instead(asked),
            "marked": marked,
            "bar": f"where this {marked} lies among all, from a ten-thousandth of the greatest on",
            "text": self._text(asked),
            "code": self._code(asked.search),
            "columns": self._columns(),
            "choices": [*(choice_data(name, values) for name, values in self._choices().items()), size_choice()],
            "cost": self._cost(asked),
        }

    def _nothing(self, asked: Asked) -> str:
        """Return a message that nothing is listed, with a suggestion."""
        if not asked.search or asked.filters or is_expression(asked.search):
            return "no weight fits"
        said = none_fits(asked.search, [one.name for one in self._weights])
        sought = SOUGHT.get(asked.search.lower())
        if sought is None or sought in self._states:
            return said
        return f"{said}; " + ("Scan looks for it" if not self.found else f"what was read holds no {sought}")

    def _instead(self, asked: Asked) -> dict[str, Any] | None:
        """Return a filter for weights with the searched state, None without any."""
        sought = SOUGHT.get(asked.search.lower(), "")
        number = self._states.get(sought, 0)
        if not number:
            return None
        text = f"{counted(number, 'weight')} {'holds' if number == 1 else 'hold'} {sought}"
        return {"text": text, "filters": {"state": sought}}

    def _choices(self) -> dict[str, list[str]]:
        """Return the values of all filters, including the states from scans."""
        found = [state for state in FOUND_STATES if state in self._states]
        # Where one of both is all that is not finite, it needs no other name.
        both = {NAN_STATE, INFINITY_STATE}
        found = [state for state in found if state not in both or both <= {*found}]
        choices = self.outline.choices
        return {**choices, "state": [*choices["state"], *found]}

    def _count_states(self) -> dict[str, int]:
        """Return the number of weights in each state from scans."""
        order, counts = OrderOf(self.found), Counter[str]()
        for one in self._weights:
            # Of what has no values, none are unread.
            counts.update(state for state in order.states(one.name) if state != UNREAD or one._can_be_read)
        return dict(counts)

    def _cost(self, asked: Asked) -> str:
        """Return the cost of a scan of the listed weights."""
        listed = self.outline.chosen(asked, self.order) if asked.is_list else self._weights
        compiles = any(is_to_compile(one.nbytes) for one in listed)
        return cost_of_scan(self.outline.sums_listed(asked, self.order).nbytes, compiles=compiles)

    def _code(self, search: str) -> str:
        """Return the expression of an explorer of the listed weights, or ``""``."""
        opened = self._opened()
        return f"{opened}.find({_pattern_code(search)})" if search and opened else opened

    def _text(self, asked: Asked) -> str:
        """Return a text on the number and size of the matching weights."""
        if not asked.is_list:
            return ""
        every = self._number
        sums = self.outline.sums_listed(asked, self.order)
        if sums.num_weights == len(self._weights):
            # The heading has the totals, in which overlapping ones count once.
            return every
        return f"{sums.num_weights:,} of {every} · {counted(sums.numel, 'element')} · {format_nbytes(sums.nbytes)}"

    def _columns(self) -> list[dict[str, Any]]:
        """Return the visible columns."""
        told = self.outline.told
        scanned = (column for column in columns() if column.is_scanned and self.found)
        told |= {column.name for column in scanned if column.figure is None or column.name in self._figures}
        told |= {GRAD} if any(one.lacks_gradient for one in self.found.values()) else set()
        widths = self._widths | {"name": self._widths["name"] + self._alarm_width}
        return [column_data(column, widths[column.name]) for column in columns() if column.name in told]


def _pattern_code(search: str) -> str:
    """Return the argument of `find` that finds the same."""
    if is_expression(search):
        return f"re.compile({search[1:-1]!r})"
    return repr(search)

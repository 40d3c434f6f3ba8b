"""Serve the tree of weights with the results of scans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.core.values.stats.fast import is_to_compile
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry, shape_text
from tensornp.models.names.search import is_expression, none_fits
from tensornp.models.optimizers import number_told
from tensornp.models.outline.choose import FOUND_STATES, INFINITY_STATE, NAN_STATE, SUMMED, UNREAD, Asked, filters
from tensornp.models.outline.columns import GRAD, columns, sortable
from tensornp.models.outline.outline import Outline, Sums
from tensornp.models.outline.spreads import Spreads
from tensornp.render.layout.tree import TreeColumn, TreeRow
from tensornp.render.layout.words import cost_of_scan
from tensornp.widget.tree import Tree
from tensornp.widget.values import NONSENSE
from tensornp.widget.weight_rows import (
    Found,
    OrderOf,
    Told,
    choice_data,
    kinds_of,
    size_choice,
    tree_column,
    weight_row,
)

_IS_SIZE = re.compile(r"[0-9]{1,18}")


class WeightTree(Tree):
    """The rows of weights; `opened_code` gives the expression of the explorer.

    Attributes
    ----------
    found : dict of str to Found
        The results of scans by the name of a weight.
    """

    sortable = sortable()
    filters = filters()
    summed = SUMMED

    def __init__(
        self, weights: Sequence[WeightEntry], classes: Mapping[str, str], opened_code: Callable[[], str]
    ) -> None:
        self._weights, self._opened_code = weights, opened_code
        self._number = number_told(weights)
        self.outline = Outline(weights, classes)
        self.opened, self.num_branches = self.outline.first_open(), self.outline.num_branches
        self.found: dict[str, Found] = {}
        shapes = {(one.shape, one.kind) for one in weights}
        longest = max((len(shape_text(*one)) for one in shapes), default=0)
        self._max_shape = max(longest, len(counted(len(weights), "weight")))
        self._spreads: Spreads | None = None
        self._figures: set[str] = set()
        self._states: dict[str, int] = {}

    def learn(self, found: Mapping[str, Found]) -> None:
        """Add the results of a scan to those of other weights."""
        self.found |= found
        figures = {name: one.figures for name, one in self.found.items()}
        self._figures = set().union(*figures.values())
        self._states = self._count_states()
        self._spreads = Spreads(self.outline, figures, kinds_of(self.found))
        self.outline.forget()

    @property
    def order(self) -> OrderOf | None:
        """Return the order and states from a scan, None before its first result."""
        return OrderOf(self.found) if self.found else None

    def asked(self, request: Mapping[str, Any]) -> Asked:
        """Return the requested view."""
        asked = super().asked(request)
        if not all(_IS_SIZE.fullmatch(value) for column, value in asked.filters if column == "bytes"):
            raise BadRequestError(NONSENSE)
        return asked

    def below(self, parent: int, asked: Asked) -> Sequence[Any]:
        """Return the branches and weights below a branch."""
        return self.outline.below(parent, asked)

    def listed(self, asked: Asked) -> Sequence[WeightEntry]:
        """Return the weights of a list."""
        return self.outline.chosen(asked, self.order)

    def id_of(self, item: Any) -> int:
        """Return the id of a branch or a weight."""
        return self.outline.id_of(item)

    def path(self, number: int) -> frozenset[int]:
        """Return the ids of the rows that lead to a weight."""
        if not 0 <= number < len(self._weights):
            raise BadRequestError(NONSENSE)
        return self.outline.path(number)

    def row(self, item: Any, parent: int, opened: frozenset[int], asked: Asked) -> TreeRow:
        """Return the row of a branch or a weight."""
        line = self.outline.line(item, parent)
        told = Told(self.outline.number_of, self.found, self._spreads, self.outline.share_of)
        return weight_row(line, told, is_open=line.has_below and line.id in opened)

    def facts(self, asked: Asked) -> dict[str, Any]:
        """Return facts about all rows."""
        listed = self.listed(asked) if asked.is_list else self._weights
        sums = self.outline.sums_of(listed) if asked.is_list else self.outline.sums
        compiles = is_to_compile(max((one.nbytes for one in listed), default=0))
        return {
            "nothing": "" if listed else self._nothing(asked),
            "text": self._text(sums) if asked.is_list else "",
            "code": self._code(asked.search),
            "choices": [*(choice_data(name, values) for name, values in self._choices().items()), size_choice()],
            "cost": cost_of_scan(sums.nbytes, compiles=compiles),
        }

    def _nothing(self, asked: Asked) -> str:
        """Return a message that nothing is listed, with a suggestion."""
        if not asked.search or asked.filters or is_expression(asked.search):
            return "no weight fits"
        return none_fits(asked.search, [one.name for one in self._weights])

    def _choices(self) -> dict[str, list[str]]:
        """Return the values of all filters, including the states from scans."""
        found = [state for state in FOUND_STATES if state in self._states]
        # NaN and infinity are two choices only if there are both.
        both = {NAN_STATE, INFINITY_STATE}
        found = [state for state in found if state not in both or both <= {*found}]
        choices = self.outline.choices
        return {**choices, "state": [*choices["state"], *found]}

    def _count_states(self) -> dict[str, int]:
        """Return the number of weights in each state from scans."""
        order, counts = OrderOf(self.found), Counter[str]()
        for one in self._weights:
            # A weight without values is not unread.
            counts.update(state for state in order.states(one.name) if state != UNREAD or one._can_be_read)
        return dict(counts)

    def _code(self, search: str) -> str:
        """Return the expression of an explorer of the listed weights, or ``""``."""
        opened = self._opened_code()
        return f"{opened}.find({_pattern_code(search)})" if search and opened else opened

    def _text(self, sums: Sums) -> str:
        """Return a text on the number and size of the matching weights."""
        if sums.num_weights == len(self._weights):
            # The heading has the totals, in which overlapping ones count once.
            return self._number
        size = f"{counted(sums.numel, 'element')} · {format_nbytes(sums.nbytes)}"
        return f"{sums.num_weights:,} of {self._number} · {size}"

    def columns(self, asked: Asked) -> list[TreeColumn]:
        """Return the columns that say something."""
        told = self.outline.told
        scanned = (column for column in columns() if column.is_scanned and self.found)
        told |= {column.name for column in scanned if column.figure is None or column.name in self._figures}
        told |= {GRAD} if any(one.lacks_gradient for one in self.found.values()) else set()
        return [tree_column(column, asked.sort, self._max_shape) for column in columns() if column.name in told]


def _pattern_code(search: str) -> str:
    """Return the argument of `find` that finds the same."""
    if is_expression(search):
        return f"re.compile({search[1:-1]!r})"
    return repr(search)

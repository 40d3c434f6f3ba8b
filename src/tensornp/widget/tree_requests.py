"""Check the requests of a page to a tree, which may be any message."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from tensornp.errors import BadRequestError
from tensornp.models.outline.choose import Asked

MAX_TOGGLED = 10_000
MAX_LINES = 100
"""Lines of one answer."""
NONSENSE = "the page has asked for something that is not here; reload the page"


class TreeSource(Protocol):
    """The source of the lines of a tree on a page."""

    def asked(self, request: Mapping[str, Any]) -> Asked:
        """Return the requested view, or raise BadRequestError for nonsense."""

    def num_lines(self, asked: Asked) -> int:
        """Return how many lines there are."""

    def lines(self, asked: Asked, first: int, count: int) -> list[dict[str, Any]]:
        """Return some of them, as plain data."""

    def revealed(self, asked: Asked, number: int) -> tuple[Asked, int]:
        """Return the view with the parents of an item open, and its line, -1 if hidden."""

    def said(self, asked: Asked) -> dict[str, Any]:
        """Return facts about all lines: columns, choices, number and expression.

        `bar` describes the marks in the column `marked`. If there are no lines, `nothing` has a message, and `instead`
        may have the text and the filters of a button that lists others.
        """


def lines_answer(request: Mapping[str, Any], source: TreeSource) -> dict[str, Any]:
    """Return the requested lines, and facts about all matching lines."""
    asked = source.asked(request)
    first, count, at = integer_of(request.get("first", 0)), integer_of(request.get("count", 0)), -1
    if request.get("reveal") is not None:
        asked, at = source.revealed(asked, integer_of(request.get("reveal")))
        first = at - count // 2 if at >= 0 else first
    total = source.num_lines(asked)
    first = min(max(first, 0), max(total - 1, 0))
    return {
        "type": "lines",
        "total": total,
        "first": first,
        "lines": source.lines(asked, first, min(max(count, 0), MAX_LINES)),
        "revealed": at,
        "toggled": sorted(asked.toggled),
        "isList": asked.is_list,
        **source.said(asked),
    }


def asked_by(
    request: Mapping[str, Any], sortable: Collection[str], filters: Collection[str], summed: Collection[str] = ()
) -> Asked:
    """Return the requested view from a message that may be anything.

    Columns in `summed` sort the lines of a tree at each level; other columns sort a list.
    """
    search, sort, toggled = request.get("search", ""), request.get("sort", ""), request.get("toggled", [])
    wanted = request.get("filters", {})
    if not isinstance(search, str) or not isinstance(toggled, list) or len(toggled) > MAX_TOGGLED:
        raise BadRequestError(NONSENSE)
    if sort not in ("", *sortable) or not isinstance(wanted, dict) or not wanted.keys() <= set(filters):
        raise BadRequestError(NONSENSE)
    chosen = tuple(sorted((column, value) for column, value in wanted.items() if value))
    if not all(isinstance(value, str) for _, value in chosen):
        raise BadRequestError(NONSENSE)
    descending, open_ = request.get("descending") is True, frozenset(map(integer_of, toggled))
    return Asked(search.strip(), sort, descending, chosen, open_, orders_groups=sort in summed)


def integer_of(value: Any) -> int:
    """Return the value if it is an integer, or raise BadRequestError."""
    if type(value) is not int:
        raise BadRequestError(NONSENSE)
    return value

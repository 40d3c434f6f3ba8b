"""What a page may ask of the weights of a model: a request is a message that may be anything, and is checked whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tensornp.errors import BadRequestError
from tensornp.models.outline.choose import Asked, filters, is_expression
from tensornp.models.outline.columns import sortable

MAX_TOGGLED = 10_000
NONSENSE = "the page has asked for something that these weights do not have; reload the page"
_IS_SIZE = re.compile(r"[0-9]{1,18}")


def asked_by(request: Mapping[str, Any]) -> Asked:
    """Return what a page wants to see, taken from a message that may be anything."""
    search, sort, toggled = request.get("search", ""), request.get("sort", ""), request.get("toggled", [])
    wanted = request.get("filters", {})
    if not isinstance(search, str) or not isinstance(toggled, list) or len(toggled) > MAX_TOGGLED:
        raise BadRequestError(NONSENSE)
    if sort not in ("", *sortable()) or not isinstance(wanted, dict) or not wanted.keys() <= set(filters()):
        raise BadRequestError(NONSENSE)
    chosen = tuple(sorted((column, value) for column, value in wanted.items() if value))
    if not all(isinstance(value, str) and (column != "bytes" or _IS_SIZE.fullmatch(value)) for column, value in chosen):
        raise BadRequestError(NONSENSE)
    return Asked(search.strip(), sort, request.get("descending") is True, chosen, frozenset(map(integer_of, toggled)))


def integer_of(value: Any) -> int:
    """Return what should be an integer."""
    if type(value) is not int:
        raise BadRequestError(NONSENSE)
    return value


def pattern_code(search: str) -> str:
    """Return the argument of `find` that finds the same."""
    if is_expression(search):
        return f"re.compile({search[1:-1]!r})"
    return repr(search)

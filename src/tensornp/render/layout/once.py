"""A cache for values that the text and the HTML of one card share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

_Record = TypeVar("_Record")
_Said = TypeVar("_Said")


def once_for_each_card(function: Callable[[_Record], _Said]) -> Callable[[_Record], _Said]:
    """Return `function` as one that knows its last answer.

    A card is rendered as text, and at once as HTML.
    """
    last: tuple[_Record, _Said] | None = None

    @functools.wraps(function)
    def call(record: _Record) -> _Said:
        nonlocal last
        # Read once: another thread may set it meanwhile.
        known = last
        if known is None or known[0] is not record:
            known = last = record, function(record)
        return known[1]

    return call

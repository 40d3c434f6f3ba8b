"""Weights that are listed twice, under several names."""

from __future__ import annotations

from collections.abc import Iterable

from tensornp.models.entries.entry import COMPUTED, WeightEntry

_SAME = "same elements"
_WHOLE = (_SAME, "reinterpreted")
"""Relations of which both sides take the same bytes."""


def same_elements_as(entry: WeightEntry) -> list[str]:
    """Return the first names of other objects with the same elements in order."""
    return [other.name for other in entry.related if other.relation == _SAME]


def not_counted(entries: Iterable[WeightEntry]) -> frozenset[str]:
    """Return the names that totals leave out: repeated and computed weights."""
    found: list[str] = []
    earlier: set[str] = set()
    for one in entries:
        same = [*one.tied_to, *(other.name for other in one.related if other.relation in _WHOLE)]
        if one.kind == COMPUTED or (same and not earlier.isdisjoint(same)):
            found.append(one.name)
        if same:
            earlier.add(one.name)
    return frozenset(found)


_NAMES = frozenset(
    {
        "num_batches_tracked", "position_ids", "token_type_ids", "relative_position_index", "relative_coords_table",
        "rel_pos_index", "cache_position", "num_updates", "steps",
    }
)  # fmt: skip
_DTYPES = ("int64", "bool")
"""Codes of quantized weights are shorter integers."""


def is_counter(entry: WeightEntry) -> bool:
    """Return whether a weight of int64 or bool is a buffer, or has a known name."""
    if entry.dtype not in _DTYPES:
        return False
    return entry.kind == "buffer" or entry.name.rpartition(".")[2] in _NAMES


class NotListed(str):
    """A problem that hides weights, so that a comparison is not complete."""

    __slots__ = ()


class NotOfModule(NotListed):
    """A problem that hides values saved next to a model, which no module has."""

    __slots__ = ()

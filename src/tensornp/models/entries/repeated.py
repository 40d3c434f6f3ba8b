"""Weights that are listed twice, under several names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tensornp.models.entries.entry import COMPUTED, WeightEntry

_SAME = "same elements"
_WHOLE = (_SAME, "reinterpreted")
"""Relations of which both sides take the same bytes."""


def same_elements_as(entry: WeightEntry) -> list[str]:
    """Return the first names of other objects with the same elements in order."""
    return [other.name for other in entry.related if other.relation == _SAME]


def first_of_each(entries: Iterable[WeightEntry]) -> Iterator[WeightEntry]:
    """Yield one weight for each set of elements: state dicts repeat tied weights."""
    earlier: set[str] = set()
    for one in entries:
        same = same_elements_as(one)
        if earlier.isdisjoint(same):
            yield one
        if same:
            earlier.add(one.name)


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

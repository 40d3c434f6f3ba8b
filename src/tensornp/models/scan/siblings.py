"""Find the weight in a fold with an outlying norm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple

from tensornp.models.entries.counter import is_counter
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.outline.fold import folded

_MIN_WEIGHTS = 4
"""Of fewer, none is odd: there are no three others that agree."""
_MIN_TIMES = 4


class Odd(NamedTuple):
    """A weight with an outlying norm, and the other norms.

    `times` is the ratio to their median, and `greatest` is the largest of them.
    """

    name: str
    norm: float
    times: float
    greatest: float
    num_others: int


def odd_one(norms: Mapping[str, float]) -> Odd | None:
    """Return the weight of a fold with an outlying norm, if any."""
    if len(norms) < _MIN_WEIGHTS:
        return None
    *others, top = sorted(norms, key=norms.__getitem__)
    usual = median(norms[name] for name in others)
    # Beside zeros, whatever is not zero would be; and of two there is no one.
    if not 0 < _MIN_TIMES * usual <= norms[top] or norms[others[-1]] >= _MIN_TIMES * usual:
        return None
    return Odd(top, norms[top], norms[top] / usual, norms[others[-1]], len(others))


def odd_ones(entries: Iterable[WeightEntry], norms: Mapping[str, float]) -> dict[str, Odd]:
    """Return the weights with outlying norms among the others of their fold."""
    found = (
        odd_one({one.name: norms[one.name] for one in row.entries if one.name in norms})
        for row in folded(entries)
        if not is_counter(row.entries[0])
    )
    return {one.name: one for one in found if one is not None}

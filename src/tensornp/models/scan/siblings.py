"""Find the weight of a fold whose norm is several times that of the others."""

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
    """The odd one: its norm, how many times the median of the others that is, and the greatest of these."""

    name: str
    norm: float
    times: float
    greatest: float
    num_others: int


def odd_one(norms: Mapping[str, float]) -> Odd | None:
    """Return which of the weights of a fold stands out by its norm; None where none does."""
    if len(norms) < _MIN_WEIGHTS:
        return None
    *others, top = sorted(norms, key=norms.__getitem__)
    usual = median(norms[name] for name in others)
    # Beside zeros, whatever is not zero would be; and of two there is no one.
    if not 0 < _MIN_TIMES * usual <= norms[top] or norms[others[-1]] >= _MIN_TIMES * usual:
        return None
    return Odd(top, norms[top], norms[top] / usual, norms[others[-1]], len(others))


def odd_ones(entries: Iterable[WeightEntry], norms: Mapping[str, float]) -> dict[str, Odd]:
    """Return the weights that stand out among their siblings, which are in one line of the tree with them."""
    found = (
        odd_one({one.name: norms[one.name] for one in row.entries if one.name in norms})
        for row in folded(entries)
        if not is_counter(row.entries[0])
    )
    return {one.name: one for one in found if one is not None}

"""The elements that differ between two tensors in the order of |Δ|, the largest first, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.modes import apart
from tensornp.core.tensor.strides import place_of
from tensornp.core.values.compare.aligned import pairs_of
from tensornp.core.values.compare.numbers import Array, sizes_of_change
from tensornp.core.values.reading.supply import Supply, supply_of

Index = tuple[int, ...]


class Ranked(NamedTuple):
    """An element that differs: its index, which it is in the order of |Δ|, from 1 on, and of how many."""

    place: Index
    number: int
    total: int


@apart
@np.errstate(all="ignore")
def next_by_size(a: Any, b: Any, after: Index | None = None) -> Ranked | None:
    """Return the element that differs most, or the one that follows `after` in the order of |Δ|.

    Those of one size stand in the order of their indices. First come those of which no number tells how much they
    differ: finite on one side alone, or infinite in another way. The largest follows the smallest, and whatever does
    not differ. Both have one shape, and are read once or, up to `after`, twice, as `compare` reads them; None where
    nothing differs. Raises as `compare`.
    """
    first, second = (supply_of(obj, in_order=True, is_dense=True, caller="compare") for obj in (a, b))
    past = place_of(after, first.shape) if after else -1
    size = _size_at(past, first, second)
    count = num_before = 0
    # How large it is, and where: of all, and of those that follow.
    largest, following = (0.0, -1), (0.0, -1)
    for start, sizes in _sizes(first, second):
        changed = sizes > 0
        count += int(np.count_nonzero(changed))
        largest = _larger(largest, sizes, start)
        if size:
            is_later = (sizes < size) | ((sizes == size) & (np.arange(start, start + sizes.size) > past))
            num_before += int(np.count_nonzero(changed & ~is_later))
            following = _larger(following, np.where(is_later, sizes, 0), start)
    found, number = (following[1], num_before + 1) if following[0] else (largest[1], 1)
    if found < 0:
        return None
    shape = first.shape
    return Ranked(tuple(int(i) for i in np.unravel_index(found, shape)) if shape else (), number, count)


def _size_at(place: int, first: Supply, second: Supply) -> float:
    """Return |Δ| of one element; 0 for a place that is none."""
    if place >= 0:
        for start, sizes in _sizes(first, second):
            if place < start + sizes.size:
                return float(sizes[place - start])
    return 0.0


def _sizes(first: Supply, second: Supply) -> Iterator[tuple[int, Array]]:
    """Yield |Δ| block by block, each with the place of its first element; infinity where no number tells it."""
    start = 0
    for values_a, values_b in pairs_of(first, second):
        sizes = sizes_of_change(values_a, values_b)
        sizes[np.isnan(sizes)] = np.inf
        yield start, sizes
        start += sizes.size


def _larger(known: tuple[float, int], sizes: Array, start: int) -> tuple[float, int]:
    at = int(sizes.argmax()) if sizes.size else 0
    return (float(sizes[at]), start + at) if sizes.size and sizes[at] > known[0] else known

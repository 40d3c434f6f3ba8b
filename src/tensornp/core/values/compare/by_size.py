"""The largest difference between two tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.values.compare.aligned import pairs_of
from tensornp.core.values.compare.numbers import Array, sizes_of_change
from tensornp.core.values.reading.supply import Supply, supply_of

Index = tuple[int, ...]


@outside_modes
@np.errstate(all="ignore")
def largest_difference(a: Any, b: Any) -> Index | None:
    """Return the index of the largest difference of two tensors of one shape; None if they are equal.

    A value that is finite on one side alone counts as an infinite difference. Raises as `compare`.
    """
    first, second = (supply_of(obj, in_order=True, is_dense=True, caller="compare") for obj in (a, b))
    size, place = 0.0, -1
    for start, sizes in _sizes(first, second):
        at = int(sizes.argmax()) if sizes.size else 0
        if sizes.size and sizes[at] > size:
            size, place = float(sizes[at]), start + at
    if place < 0:
        return None
    return tuple(int(i) for i in np.unravel_index(place, first.shape)) if first.shape else ()


def _sizes(first: Supply, second: Supply) -> Iterator[tuple[int, Array]]:
    """Yield |Δ| block by block, each with the place of its first element; infinity where no number tells it."""
    start = 0
    for values_a, values_b in pairs_of(first, second):
        sizes = sizes_of_change(values_a, values_b)
        sizes[np.isnan(sizes)] = np.inf
        yield start, sizes
        start += sizes.size

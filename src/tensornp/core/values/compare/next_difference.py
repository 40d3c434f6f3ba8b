"""Where two tensors differ next, past a place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.collector import uncollected
from tensornp.core.lowlevel.float_errors import ignoring_float_errors
from tensornp.core.lowlevel.modes import apart
from tensornp.core.values.compare.aligned import pairs_of
from tensornp.core.values.compare.pair_tally import places_of_change
from tensornp.core.values.reading.supply import supply_of

Index = tuple[int, ...]


@apart
@ignoring_float_errors
def next_difference(a: Any, b: Any, after: Index | None = None) -> Index | None:
    """Return the index of the next element that differs, in the order of the indices, and from the first one on again.

    Both have one shape. Reads up to it block by block, as `compare` does; None where nothing differs. Raises as
    `compare`.
    """
    first, second = (supply_of(obj, in_order=True, is_dense=True, caller="compare") for obj in (a, b))
    shape = first.shape
    past = -1 if after is None or not shape else int(np.ravel_multi_index(after, shape))
    earliest, start = math.inf, 0
    with threads.GATE, uncollected():
        for values_a, values_b in pairs_of(first, second):
            places = start + places_of_change(values_a, values_b)
            start += values_a.size
            later = places[places > past]
            if later.size:
                return _index(int(later[0]), shape)
            if places.size:
                earliest = min(earliest, int(places[0]))
    return _index(int(earliest), shape) if earliest < math.inf else None


def _index(at: int, shape: Index) -> Index:
    return tuple(int(i) for i in np.unravel_index(at, shape)) if shape else ()

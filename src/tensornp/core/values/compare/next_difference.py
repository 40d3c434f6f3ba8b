"""Where two tensors differ next, past a place, and where no number tells by how much."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.collector import uncollected
from tensornp.core.lowlevel.float_errors import ignoring_float_errors
from tensornp.core.lowlevel.modes import apart
from tensornp.core.tensor.strides import place_of
from tensornp.core.values.compare.aligned import pairs_of
from tensornp.core.values.compare.pair_tally import Array, places_of_change, places_that_are_odd
from tensornp.core.values.reading.supply import supply_of
from tensornp.core.values.shown.window import Index, Window


@apart
@ignoring_float_errors
def next_difference(a: Any, b: Any, after: Index | None = None, besides: Window | None = None) -> Index | None:
    """Return the index of the next element that differs, in the order of the indices, and from the first one on again.

    Both have one shape. What a window shows is passed over. Reads up to it block by block, as `compare` does; None
    where nothing differs. Raises as `compare`.
    """
    return _next(a, b, after, places_of_change, _flat(besides))


@apart
@ignoring_float_errors
def first_odd(a: Any, b: Any) -> Index | None:
    """Return the index of the first element that is finite on one side alone, or infinite in another way, or NaN.

    It has no difference that is a number; NaN equals NaN. As `next_difference` otherwise.
    """
    return _next(a, b, None, places_that_are_odd, _flat(None))


def _next(a: Any, b: Any, after: Index | None, places_of: Callable[[Array, Array], Array], seen: Array) -> Index | None:
    first, second = (supply_of(obj, in_order=True, is_dense=True, caller="compare") for obj in (a, b))
    shape = first.shape
    past = place_of(after, shape) if after else -1
    earliest, start = math.inf, 0
    with threads.GATE, uncollected():
        for values_a, values_b in pairs_of(first, second):
            places = start + places_of(values_a, values_b)
            places = places[~np.isin(places, seen)] if seen.size else places
            start += values_a.size
            later = places[places > past]
            if later.size:
                return _index(int(later[0]), shape)
            if places.size:
                earliest = min(earliest, int(places[0]))
    return _index(int(earliest), shape) if earliest < math.inf else None


def _flat(window: Window | None) -> Array:
    """Return the places of all that a window shows, in the order of the indices."""
    if window is None or not window.shape:
        return np.zeros(0, np.int64)
    return np.ravel_multi_index(np.ix_(*window.places), window.shape).reshape(-1)


def _index(at: int, shape: Index) -> Index:
    return tuple(int(i) for i in np.unravel_index(at, shape)) if shape else ()

"""Reduce a plane to few pixels, and choose the limits of the colours."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.tensor.strides import BLOCK_NUMEL

FINITE, NAN, POSINF, NEGINF = range(4)
"""The content of a pixel."""
Plane = np.ndarray[tuple[int, int], Any]


ROBUST = 0.01
"""The part of the pixels at each end that may lie beyond."""
_FAR = 2.0
"""How many times the robust range must fit into the whole one before anything is left beyond it."""


class Limits(NamedTuple):
    """The values at the two ends of the colours; equal if all values are, NaN if none is finite."""

    low: float
    high: float
    num_below: int = 0
    num_above: int = 0

    @np.errstate(all="ignore")
    def shares(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if not self.low < self.high:
            return np.full(np.shape(values), 0.5)
        # Halves where the difference is larger than any float; those of the smallest are none.
        unit = 1.0 if math.isfinite(self.high - self.low) else 0.5
        return np.asarray((values * unit - self.low * unit) / (self.high * unit - self.low * unit))


@dataclass(frozen=True, eq=False)
class Heatmap:
    """A plane in few pixels: each is the element of its cell farthest from 0, or its NaN or infinity."""

    values: np.ndarray[Any, Any]
    flags: np.ndarray[Any, Any]
    shape: tuple[int, int]
    cell: tuple[int, int]
    is_signed: bool
    is_modulus: bool = False
    title: str = ""

    @property
    def elements_per_pixel(self) -> int:
        return min(self.cell[0], self.shape[0]) * min(self.cell[1], self.shape[1])

    def count(self, flag: int) -> int:
        return int(np.count_nonzero(self.flags == flag))

    @functools.cached_property
    @np.errstate(all="ignore")
    def limits(self) -> Limits:
        """The limits of the colours; if 1 % at each end lie far out, they lie beyond."""
        pixels = self.values[self.flags == FINITE]
        if not pixels.size:
            return Limits(math.nan, math.nan)
        sizes = np.abs(pixels) if self.is_signed else pixels
        low, high = float(sizes.min()), float(sizes.max())
        least, most = (float(q) for q in np.quantile(sizes, (ROBUST, 1 - ROBUST)))
        if most > least and high / _FAR - low / _FAR > most - least:
            low, high = least, most
        low = -high if self.is_signed else low
        return Limits(low, high, int((pixels < low).sum()), int((pixels > high).sum()))


@np.errstate(all="ignore")
def heatmap_of(
    shape: tuple[int, int],
    read: Callable[[range, range], Plane | None],
    max_height: int = 192,
    max_width: int = 192,
) -> Heatmap | None:
    """Return the heat map of a plane; `read` returns some of its rows and columns, or None to stop."""
    height, width = cell = max(1, -(-shape[0] // max_height)), max(1, -(-shape[1] // max_width))
    low, high = np.empty((2, -(-shape[0] // height), -(-shape[1] // width)))
    # Blocks consist of whole cells.
    num_columns = max(BLOCK_NUMEL // (height * width), 1) * width
    num_rows = max(BLOCK_NUMEL // (height * min(num_columns, shape[1])), 1) * height
    for top, left in itertools.product(range(0, shape[0], num_rows), range(0, shape[1], num_columns)):
        rows, columns = range(top, min(top + num_rows, shape[0])), range(left, min(left + num_columns, shape[1]))
        values = read(rows, columns)
        if values is None:
            return None
        for ends, reduce in ((low, np.minimum), (high, np.maximum)):
            cells: Any = values
            if height > 1:
                # `reduceat` takes seven times as long along the first axis.
                cells = np.stack([reduce.reduce(values[i : i + height]) for i in range(0, len(rows), height)])
            if width > 1:
                cells = reduce.reduceat(cells, range(0, len(columns), width), axis=1)
            ends[top // height :, left // width :][: cells.shape[0], : cells.shape[1]] = cells
    values = np.where(high >= -low, high, low)
    flags = np.select([np.isnan(low), values == np.inf, values == -np.inf], [NAN, POSINF, NEGINF], FINITE)
    return Heatmap(values, flags.astype(np.uint8), shape, cell, bool((low < 0).any() and (high > 0).any()))

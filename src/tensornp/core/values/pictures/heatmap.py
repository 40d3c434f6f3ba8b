"""Reduce a plane to few pixels; each shows the element of its cell that is farthest from 0."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

FINITE, NAN, POSINF, NEGINF, NOTHING = range(5)
"""The content of a pixel; NOTHING if no element of its cell was read, or between two tiles."""
MAX_HEIGHT = MAX_WIDTH = 192
Plane = np.ndarray[tuple[int, int], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Heatmap:
    """A plane in few pixels; no hidden element is farther out than the shown ones.

    `values` are the elements of each cell that are farthest from 0, the larger of two; NaN if there is none. `flags`
    are `FINITE`, `NAN`, `POSINF`, `NEGINF` or `NOTHING`: one NaN claims its pixel, else one infinity does, the positive
    one of both. `shape` are the rows and columns of the plane, and `cell` those of a pixel; the last ones may cover
    fewer. It `is_signed` if there are elements on both sides of 0, in cells without NaN, and `is_modulus` for complex
    elements.
    """

    values: np.ndarray[Any, Any]
    flags: np.ndarray[Any, Any]
    shape: tuple[int, int]
    cell: tuple[int, int]
    is_signed: bool
    is_modulus: bool = False

    @property
    def elements_per_pixel(self) -> int:
        """The most elements that a pixel covers."""
        return min(self.cell[0], self.shape[0]) * min(self.cell[1], self.shape[1])

    @property
    def is_tiled(self) -> bool:
        """Whether it shows several planes."""
        return bool(self.flags.shape != _size(self.shape, self.cell))

    def count(self, flag: int) -> int:
        """Return the number of pixels with a flag."""
        return int(np.count_nonzero(self.flags == flag))


class HeatmapBuilder:
    """Builds a `Heatmap` from blocks in any order.

    All cells but the last have one size: at 257 columns and at most 256 pixels, a pixel covers 2.
    """

    def __init__(self, shape: tuple[int, int], max_height: int = MAX_HEIGHT, max_width: int = MAX_WIDTH) -> None:
        self.shape = shape
        self.cell = max(1, -(-shape[0] // max_height)), max(1, -(-shape[1] // max_width))
        size = _size(shape, self.cell)
        self._low, self._high = np.full(size, np.inf), np.full(size, -np.inf)

    def add(
        self, values: Plane, first_row: int = 0, first_column: int = 0, *, shown: np.ndarray[Any, Any] | None = None
    ) -> None:
        """Add a block of numbers that begins at this row and column; `shown` is False for hidden ones."""
        if not values.size:
            return
        with np.errstate(invalid="ignore"):
            low = high = values
            if shown is not None:
                low, high = np.where(shown, values, np.inf), np.where(shown, values, -np.inf)
            first = first_row, first_column
            for kept, reduce, block in ((self._low, np.minimum, low), (self._high, np.maximum, high)):
                _merge(kept, reduce, _in_cells(reduce, block, first, self.cell), first, self.cell)

    def finish(self) -> Heatmap:
        """Return the picture of the blocks so far."""
        low, high = self._low, self._high
        is_nothing, is_nan = low > high, np.isnan(low)
        values = np.where(high >= -low, high, low)
        values[is_nothing] = np.nan
        flags = np.select(
            [is_nothing, is_nan, values == np.inf, values == -np.inf], [NOTHING, NAN, POSINF, NEGINF], FINITE
        ).astype(np.uint8)
        return Heatmap(values, flags, self.shape, self.cell, bool((low < 0).any() and (high > 0).any()))


def _size(shape: tuple[int, int], cell: tuple[int, int]) -> tuple[int, int]:
    """Return the numbers of cells along both dimensions."""
    return -(-shape[0] // cell[0]), -(-shape[1] // cell[1])


def _in_cells(reduce: np.ufunc, block: Plane, first: tuple[int, int], cell: tuple[int, int]) -> Plane:
    """Reduce each cell of a block that begins at this row and column."""
    if cell[0] > 1:
        # `reduceat` takes seven times as long along the first axis.
        starts = [*range(-(first[0] % cell[0]), len(block), cell[0]), len(block)]
        block = np.stack([reduce.reduce(block[max(a, 0) : b], axis=0) for a, b in itertools.pairwise(starts)])
    if cell[1] > 1:
        block = reduce.reduceat(block, np.arange(-(first[1] % cell[1]), block.shape[1], cell[1]).clip(0), axis=1)
    return block


def _merge(kept: Plane, reduce: np.ufunc, cells: Plane, first: tuple[int, int], cell: tuple[int, int]) -> None:
    """Reduce cells with what is kept of them."""
    top, left = first[0] // cell[0], first[1] // cell[1]
    part = kept[top : top + cells.shape[0], left : left + cells.shape[1]]
    reduce(part, cells, out=part)

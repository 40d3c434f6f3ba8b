"""The few elements that stand for a whole plane in a picture: of each cell the one farthest from the centre."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.errors import BadRequestError

FINITE, NAN, POSINF, NEGINF, NOTHING = range(5)
"""What a pixel shows; NOTHING where no element of its cell was read, or between two tiles."""
MAX_HEIGHT = MAX_WIDTH = 192
_MANY = 400
"""Cells for each of their columns from which on a call of NumPy for each column costs less than one step a cell."""
_LONG_LINE = 2048
"""Elements of a line from which on one call of NumPy costs little beside them."""
Plane = np.ndarray[tuple[int, int], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Heatmap:
    """A plane in few pixels, with no element hidden that is farther out than those that are shown.

    Attributes
    ----------
    values : numpy.ndarray
        float64, of height × width: the element of each cell that is farthest from `centre`; of two that are equally
        far the larger one; NaN where there is nothing.
    flags : numpy.ndarray
        uint8: `FINITE`, `NAN`, `POSINF`, `NEGINF` or `NOTHING`. One NaN claims its pixel, also beside infinities, and
        one infinity that of a cell without a NaN; of both infinities the positive one does.
    shape : tuple of int
        Rows and columns of the plane.
    cell : tuple of int
        Rows and columns that a pixel covers; those of the last row and column of pixels cover what is left.
    is_signed : bool
        Whether there are elements on both sides of `centre`, in cells without a NaN.
    centre : float
    is_mean : bool
        Whether a value is the root mean square of its cell instead.
    is_modulus : bool
        Whether the elements are complex, and the values those of their modulus.
    """

    values: np.ndarray[Any, Any]
    flags: np.ndarray[Any, Any]
    shape: tuple[int, int]
    cell: tuple[int, int]
    is_signed: bool
    centre: float = 0.0
    is_mean: bool = False
    is_modulus: bool = False

    @property
    def elements_per_pixel(self) -> int:
        """How many elements a pixel covers at most."""
        return min(self.cell[0], self.shape[0]) * min(self.cell[1], self.shape[1])

    @property
    def is_tiled(self) -> bool:
        """Whether it is several planes, with nothing between them."""
        return bool(self.flags.shape != _size(self.shape, self.cell))

    def count(self, flag: int) -> int:
        """Return how many pixels show that."""
        return int(np.count_nonzero(self.flags == flag))

    def bounds_of(self, row: int, column: int) -> tuple[slice, slice]:
        """Return the rows and the columns of the plane that a pixel covers."""
        starts = row * self.cell[0], column * self.cell[1]
        ends = (min(start + step, size) for start, step, size in zip(starts, self.cell, self.shape, strict=True))
        rows, columns = (slice(start, end) for start, end in zip(starts, ends, strict=True))
        return rows, columns


class HeatmapBuilder:
    """What makes a `Heatmap` of blocks, in any order, within the memory of the picture and some lines of a block.

    All cells have one size but the last ones, so that each pixel says as much as the next: at 257 columns and room for
    256, a pixel covers 2. Threads have one each, whose pictures add up by `merge`, which gives the same bits in any
    order. Integers of more than 53 bits are rounded, once they have been compared.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        max_height: int = MAX_HEIGHT,
        max_width: int = MAX_WIDTH,
        centre: float = 0.0,
    ) -> None:
        if len(shape) != 2 or min(*shape, max_height - 1, max_width - 1) < 0 or not math.isfinite(centre):
            raise BadRequestError(
                f"no heat map of shape {shape}, at most {max_height} × {max_width} pixels, around {centre}; pass two "
                "dimensions, at least one pixel and a finite centre"
            )
        self.shape, self.centre = shape, centre
        self.cell = max(1, -(-shape[0] // max_height)), max(1, -(-shape[1] // max_width))
        size = _size(shape, self.cell)
        self._low, self._high = np.full(size, np.inf), np.full(size, -np.inf)

    def add(
        self, values: Plane, first_row: int = 0, first_column: int = 0, *, shown: np.ndarray[Any, Any] | None = None
    ) -> None:
        """Take in a block of the plane: whole rows, or any other rectangle of it.

        Parameters
        ----------
        values : numpy.ndarray
            Two-dimensional, of bools, integers or floats; it is only read. The quickest is one with rows, or columns,
            that lie together; float16, which NumPy compares slowly, is widened.
        first_row, first_column : int
            Where in the plane its first element belongs.
        shown : numpy.ndarray of bool, optional
            Of the same shape: False for elements that do not count, those that a mask hides.
        """
        if not values.size:
            return
        # A signalling NaN is no news as it is widened.
        with np.errstate(invalid="ignore"):
            if values.dtype == np.float16:
                values = values.astype(np.float32)
            low = high = values
            if shown is not None:
                low, high = np.where(shown, values, np.inf), np.where(shown, values, -np.inf)
            _take_in(self._low, np.minimum, low, (first_row, first_column), self.cell)
            _take_in(self._high, np.maximum, high, (first_row, first_column), self.cell)

    def merge(self, other: HeatmapBuilder) -> None:
        """Take in what another one has seen of the same plane."""
        if (self.shape, self.cell, self.centre) != (other.shape, other.cell, other.centre):
            raise BadRequestError("two heat maps of different planes or sizes do not add up; make both of one shape")
        with np.errstate(invalid="ignore"):
            np.minimum(self._low, other._low, out=self._low)
            np.maximum(self._high, other._high, out=self._high)

    def finish(self) -> Heatmap:
        """Return the picture of what was added so far."""
        low, high = self._low, self._high
        is_nothing, is_nan = low > high, np.isnan(low)
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.where(high - self.centre >= self.centre - low, high, low)
        values[is_nothing] = np.nan
        flags = np.select(
            [is_nothing, is_nan, values == np.inf, values == -np.inf], [NOTHING, NAN, POSINF, NEGINF], FINITE
        ).astype(np.uint8)
        has_both = bool((low < self.centre).any() and (high > self.centre).any())
        return Heatmap(values, flags, self.shape, self.cell, has_both, self.centre)


class MeanBuilder(HeatmapBuilder):
    """What makes a `Heatmap` of the root mean square of each cell, of blocks that hide nothing and cover the plane.

    The squares of its pixels share out what all squares sum up to, where the farthest elements of cells hide how few of
    these are far.
    """

    def __init__(self, shape: tuple[int, int], max_height: int = MAX_HEIGHT, max_width: int = MAX_WIDTH) -> None:
        super().__init__(shape, max_height, max_width)
        self._roots = np.zeros(self._low.shape)

    def add(
        self, values: Plane, first_row: int = 0, first_column: int = 0, *, shown: np.ndarray[Any, Any] | None = None
    ) -> None:
        """Take in a block as `HeatmapBuilder` does; of what is not finite, the pixel tells that alone."""
        super().add(values, first_row, first_column, shown=shown)
        if values.size:
            finite = np.where(np.isfinite(values), values, 0.0)
            # No square is larger than any float.
            _take_in(self._roots, np.hypot, finite, (first_row, first_column), self.cell)

    def finish(self) -> Heatmap:
        """Return the picture of what was added so far."""
        made = super().finish()
        rows, columns = (
            np.minimum(step, size - np.arange(0, max(size, 1), step)) if size else np.ones(0)
            for step, size in zip(self.cell, self.shape, strict=True)
        )
        means = self._roots / np.sqrt(np.outer(rows, columns))
        return replace(made, values=np.where(made.flags == FINITE, means, made.values), is_mean=True)


def _size(shape: tuple[int, int], cell: tuple[int, int]) -> tuple[int, int]:
    """Return how many cells there are along both dimensions."""
    return -(-shape[0] // cell[0]), -(-shape[1] // cell[1])


def _take_in(kept: Plane, extreme: np.ufunc, block: Plane, first: tuple[int, int], cell: tuple[int, int]) -> None:
    """Let the extremes of the cells that `block` has a part of count among those that are `kept`."""
    if block.flags.f_contiguous and not block.flags.c_contiguous:
        # Lines of memory are what NumPy is quick at; here these are columns.
        kept, block, first, cell = kept.T, block.T, first[::-1], cell[::-1]
    cells = _by_columns(extreme, _by_rows(extreme, block, first[0], cell[0]), first[1], cell[1])
    top, left = first[0] // cell[0], first[1] // cell[1]
    part = kept[top : top + cells.shape[0], left : left + cells.shape[1]]
    extreme(part, cells, out=part)


def _by_rows(extreme: np.ufunc, block: Plane, first: int, cell: int) -> Plane:
    """Return one line for each cell of `cell` rows that `block` has a part of; its first row is the one at `first`."""
    if cell == 1:
        return block
    num_rows, num_columns = block.shape
    head = min(-first % cell, num_rows)
    whole = (num_rows - head) // cell
    tail = head + whole * cell
    lines = [_over_rows(extreme, block[None, :head])] if head else []
    lines += [_over_rows(extreme, block[head:tail].reshape(whole, cell, num_columns))] if whole else []
    lines += [_over_rows(extreme, block[None, tail:])] if tail < num_rows else []
    return lines[0] if len(lines) == 1 else np.concatenate(lines)


def _over_rows(extreme: np.ufunc, cells: np.ndarray[Any, Any]) -> Plane:
    """Return the extremes over the middle one of three dimensions.

    NumPy takes line after line: several short ones are laid side by side, as one that is long.
    """
    count, num_rows, width = cells.shape
    if width == 1:
        return extreme.reduce(cells[:, :, 0], axis=1, keepdims=True)  # type: ignore[no-any-return]
    beside = min(_LONG_LINE // width, math.isqrt(num_rows))
    if beside < 2 or num_rows < 2 * beside or not cells.flags.c_contiguous:
        return extreme.reduce(cells, axis=1)  # type: ignore[no-any-return]
    whole = num_rows // beside * beside
    wide = extreme.reduce(cells[:, :whole].reshape(count, whole // beside, beside * width), axis=1)
    lines = extreme.reduce(wide.reshape(count, beside, width), axis=1)
    if whole < num_rows:
        extreme(lines, extreme.reduce(cells[:, whole:], axis=1), out=lines)
    return lines  # type: ignore[no-any-return]


def _by_columns(extreme: np.ufunc, lines: Plane, first: int, cell: int) -> Plane:
    """Return one element for each cell of `cell` columns that `lines` have a part of.

    One call for each column of a cell costs less than `reduceat`, which takes cell after cell, where these are many.
    """
    num_columns = lines.shape[1]
    if cell == 1:
        return lines
    if first % cell or lines.size < _MANY * cell**2:
        starts = np.arange(-(first % cell), num_columns, cell)
        starts[0] = 0
        return extreme.reduceat(lines, starts, axis=1)
    cells = lines[:, ::cell].copy()
    for column in range(1, cell):
        part = lines[:, column::cell]
        extreme(cells[:, : part.shape[1]], part, out=cells[:, : part.shape[1]])
    return cells

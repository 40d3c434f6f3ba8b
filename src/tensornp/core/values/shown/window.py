"""The window of a tensor: a table along two axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensornp.core.tensor.form import Places
from tensornp.errors import BadRequestError

MAX_ROWS, MAX_COLUMNS = 40, 24
"""Rows and columns of a window at most."""
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """A table of `num_rows` rows and `num_columns` columns of an array of `shape`.

    `row_axis` runs down and `column_axis` to the right; an array of one dimension is one row. `corner` is the index of
    the element at the top left.
    """

    shape: Index
    row_axis: int | None
    column_axis: int | None
    corner: Index
    num_rows: int
    num_columns: int

    @property
    def numel(self) -> int:
        """The number of shown cells."""
        return self.num_rows * self.num_columns

    @property
    def plane(self) -> tuple[int, int]:
        """Rows and columns that the window can be moved over."""
        rows, columns = (1 if axis is None else self.shape[axis] for axis in (self.row_axis, self.column_axis))
        return rows, columns

    @property
    def _counts(self) -> list[int]:
        """The number of shown indices along each axis."""
        seen = {self.row_axis: self.num_rows, self.column_axis: self.num_columns}
        return [seen.get(axis, 1) for axis in range(len(self.shape))]

    @property
    def index(self) -> tuple[int | slice, ...]:
        """The index of the whole array that gives the shown elements, which `is_transposed` may turn."""
        axes = (self.row_axis, self.column_axis)
        pairs = zip(self.corner, self._counts, strict=True)
        return tuple(slice(at, at + count) if axis in axes else at for axis, (at, count) in enumerate(pairs))

    @property
    def places(self) -> Places:
        """The shown indices of each dimension."""
        return [list(range(at, at + count)) for at, count in zip(self.corner, self._counts, strict=True)]

    @property
    def is_transposed(self) -> bool:
        """Whether the axis that runs down comes after the one that runs to the right."""
        return self.row_axis is not None and self.column_axis is not None and self.row_axis > self.column_axis

    def begun_at(self, corner: Sequence[int]) -> Window:
        """Return the window whose first element is at `corner`, or as near to it as the array reaches."""
        ends = [max(size - count, 0) for size, count in zip(self.shape, self._counts, strict=True)]
        return replace(self, corner=tuple(min(max(at, 0), end) for at, end in zip(corner, ends, strict=True)))

    def moved_to_show(self, index: Sequence[int]) -> Window:
        """Return the window moved by as little as shows the element at `index`, or the nearest to it."""
        spans = zip(index, self.corner, self._counts, strict=True)
        return self.begun_at([min(max(at, i - max(count, 1) + 1), i) for i, at, count in spans])

    def centered_on(self, index: Sequence[int]) -> Window:
        """Return the window with the element at `index` in its middle, along each axis that did not show it."""
        spans = zip(index, self.corner, self._counts, strict=True)
        return self.begun_at([at if at <= i < at + count else i - count // 2 for i, at, count in spans])


def window_of(
    shape: Index,
    *,
    axes: tuple[int, int] | None = None,
    corner: Sequence[int] = (),
    num_rows: int = 16,
    num_columns: int = 12,
) -> Window:
    """Return a window on an array of `shape`, along `axes` or its last two.

    A window that is too large, or begins too late, is cut to the array and to `MAX_ROWS` × `MAX_COLUMNS`. A `corner` of
    another number of dimensions is ignored. Raises BadRequestError if `axes` are not two different ones of the array.
    """
    ndim = len(shape)
    row_axis, column_axis = (ndim - 2 if ndim > 1 else None), (ndim - 1 if ndim else None)
    if axes is not None and ndim > 1:
        row_axis, column_axis = axes
        if row_axis == column_axis or not all(0 <= axis < ndim for axis in axes):
            raise BadRequestError(
                f"rows along axis {row_axis} and columns along axis {column_axis} are no table of {ndim} dimensions; "
                f"choose two different ones of 0 to {ndim - 1}"
            )
    is_empty = 0 in shape
    rows, columns = (1 if axis is None else shape[axis] for axis in (row_axis, column_axis))
    window = Window(
        shape,
        row_axis,
        column_axis,
        (0,) * ndim,
        0 if is_empty else min(rows, max(num_rows, 1), MAX_ROWS),
        0 if is_empty else min(columns, max(num_columns, 1), MAX_COLUMNS),
    )
    return window.begun_at(corner) if len(corner) == ndim and not is_empty else window

"""The window of a tensor, a table along two axes, and the index that a user types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensornp.core.lowlevel.text import quoted
from tensornp.core.tensor.form import Places
from tensornp.core.tensor.shards import ShardFacts
from tensornp.errors import BadRequestError

MAX_ROWS, MAX_COLUMNS = 40, 24
"""Rows and columns of a window at most."""
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """A table of an array of `shape` along two axes; `corner` is the index at its top left."""

    shape: Index
    row_axis: int | None
    column_axis: int | None
    corner: Index
    num_rows: int
    num_columns: int

    @property
    def numel(self) -> int:
        return self.num_rows * self.num_columns

    @property
    def plane(self) -> tuple[int, int]:
        rows, columns = (1 if axis is None else self.shape[axis] for axis in (self.row_axis, self.column_axis))
        return rows, columns

    @property
    def _counts(self) -> list[int]:
        seen = {self.row_axis: self.num_rows, self.column_axis: self.num_columns}
        return [seen.get(axis, 1) for axis in range(len(self.shape))]

    @property
    def index(self) -> tuple[int | slice, ...]:
        axes = (self.row_axis, self.column_axis)
        pairs = zip(self.corner, self._counts, strict=True)
        return tuple(slice(at, at + count) if axis in axes else at for axis, (at, count) in enumerate(pairs))

    @property
    def places(self) -> Places:
        return [range(at, at + count) for at, count in zip(self.corner, self._counts, strict=True)]

    @property
    def is_transposed(self) -> bool:
        return self.row_axis is not None and self.column_axis is not None and self.row_axis > self.column_axis

    def begun_at(self, corner: Sequence[int]) -> Window:
        ends = [max(size - count, 0) for size, count in zip(self.shape, self._counts, strict=True)]
        return replace(self, corner=tuple(min(max(at, 0), end) for at, end in zip(corner, ends, strict=True)))

    def moved_to_show(self, index: Sequence[int]) -> Window:
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
    """Return a window on an array, along `axes` or its last two, cut to the array and the largest size."""
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


def parse_index(text: str, shape: Index, begin: Index | None = None) -> Index:
    """Return the index of an element; `text` is a NumPy index, which is never evaluated.

    A slice gives its first element; a whole axis, ``:`` or ``...``, gives that of `begin`, or 0.
    """
    inner = text.strip().removeprefix("[").removesuffix("]")
    parts = [part.strip() for part in inner.split(",")] if inner.strip() else []
    at = parts.index("...") if "..." in parts else len(parts)
    before, behind = parts[:at], parts[at + 1 :]
    num_named = len(before) + len(behind)
    if num_named > len(shape):
        raise BadRequestError(f"the index {quoted(text)} names too many axes; name fewer than {len(shape) + 1}")
    items = [*before, *[":"] * (len(shape) - num_named), *behind]
    whole = (0,) * len(shape) if begin is None else begin
    return tuple(
        [first if items[axis] == ":" else _first_of(items[axis], axis, shape) for axis, first in enumerate(whole)]
    )


def _first_of(text: str, axis: int, shape: Index) -> int:
    size = shape[axis]
    try:
        first, *_ = [int(end) if end.strip() else 0 for end in text.split(":", 2)] if text else []
    except ValueError:
        raise BadRequestError(f"{quoted(text)} is no index; write integers, slices and ... as in 3, :, 5:9") from None
    if not -size <= first < size:
        reach = f"write {-size} to {size - 1}" if size else "it has no element to show"
        raise BadRequestError(f"the index {text[:20]} is out of bounds for axis {axis} of shape {shape}; {reach}")
    return first % size


def window_text(window: Window, shard: ShardFacts | None = None) -> str:
    """Return the index of a window, or of a part of a tensor, in the whole; ``:`` is a whole axis."""
    ndim, whole = len(window.shape), window.shape if shard is None else shard.whole
    offsets = (shard.offsets if shard is not None else None) or (0,) * ndim
    texts = []
    for axis, (first, at, size) in enumerate(zip(offsets, window.corner, whole, strict=True)):
        count = {window.row_axis: window.num_rows, window.column_axis: window.num_columns}.get(axis)
        if 0 in window.shape or count == size:
            texts.append(":")
        else:
            texts.append(str(first + at) if count is None else f"{first + at}:{first + at + count}")
    return ", ".join(texts)


def expression_of(name: str, window: Window) -> str:
    index = window_text(window)
    return f"{name}[{index}]{'.T' if window.is_transposed else ''}" if index else name

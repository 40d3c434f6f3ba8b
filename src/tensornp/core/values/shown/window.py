"""The window of a tensor: a table along two axes, its elements, and the index that a user types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.convert.plan import ConversionPlan, decide
from tensornp.core.convert.receipt import no_data_text
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.text import quoted
from tensornp.core.tensor import kinds
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import Places, Step
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.shards import ShardFacts
from tensornp.core.values.shown.preview import COMPACT_RANGE, array_of_few, few_of, texts_of, what_it_stands_for
from tensornp.core.values.stored import StoredValues, values_of_array
from tensornp.errors import BadRequestError, NoDataError

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
    whole = window.shape if shard is None else shard.whole
    offsets = (shard.offsets if shard is not None else None) or (0,) * len(whole)
    texts = []
    for first, item, size in zip(offsets, window.index, whole, strict=True):
        ends = (item.start, item.stop) if isinstance(item, slice) else (item,)
        is_whole = 0 in window.shape or ends == (0, size)
        texts.append(":" if is_whole else ":".join(str(first + end) for end in ends))
    return ", ".join(texts)


FULL = 100
"""The shade of the largest magnitude; negative numbers have negative shades."""
NAN, POSITIVE_INF, NEGATIVE_INF = 127, 126, -126
"""The shades of elements without a place on the scale."""


class Subject(NamedTuple):
    """The tensor of a window, or the local part of a distributed one."""

    tensor: torch.Tensor | StoredValues
    info: TensorInfo
    plan: ConversionPlan
    shard: ShardFacts | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.info._array_shape


class Seen(NamedTuple):
    """The elements of a window: short texts, exact ones, and shades from -100 to 100, or NAN and so on."""

    texts: list[str]
    exact: list[str]
    shades: list[int]


@outside_modes
def subject_of(seen: torch.Tensor | StoredValues | np.ndarray[Any, Any]) -> Subject:
    """Return the tensor that a window shows; BadRequestError for a nested one."""
    tensor: Any = values_of_array(seen) if is_array(seen) else seen
    if type(tensor) is StoredValues:
        return Subject(tensor, tensor.info, decide(tensor.info))
    info = inspect(tensor)
    tensor, info = what_it_stands_for(tensor, info)
    if info.kind.is_masked:
        raise BadRequestError(info.kind.refusal)
    if info.kind.gives_several:
        decide(info)
        raise BadRequestError("a nested tensor is several tensors; look at one of t.unbind()")
    shard = None
    while info.kind is kinds.LOCAL and info.inner is not None and not info._is_pending:
        if info.data_state == "remote":
            shard = info.shard
            if shard is not None and shard.pending:
                raise NoDataError(no_data_text(info))
        held: Any = info.kind.inner(tensor)
        tensor, info = held, info.inner
    if shard is not None and (shard.offsets is None or shard.shape != info._array_shape):
        # The place of the elements in the whole is not known.
        shard = None
    return Subject(tensor, info, decide(info), shard)


@outside_modes
def read_window(subject: Subject, window: Window) -> Seen:
    """Return the elements of `subject` in `window`; nothing else is read."""
    if not window.numel:
        return Seen([], [], [])
    array = elements_in(subject, window)
    return Seen(_short_texts(array), list(map(str, array)), shades_of(array))


def _short_texts(array: Any) -> list[str]:
    """Return numbers with the same decimals; NumPy would write all with an exponent if one is tiny."""
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.zeros(0)
    largest = float(finite.max(initial=0))
    if not COMPACT_RANGE[0] <= largest < COMPACT_RANGE[1]:
        return [text.removesuffix(".") for text in texts_of(array)]
    is_whole = bool((finite == np.rint(finite)).all())
    decimals = 0 if is_whole else max(3 - math.floor(math.log10(largest)), 0)
    least = 0.5 * 10.0**-decimals
    return [f"{value:.1e}" if 0 < abs(value) < least else f"{value:.{decimals}f}" for value in array.tolist()]


@outside_modes
def elements_in(subject: Subject, window: Window) -> Any:
    few, _ = few_of(subject.tensor, subject.info, window.places)
    few = few.cpu() if Step.TO_HOST in subject.plan.steps else few
    if window.is_transposed:
        few = few.view(window.num_columns, window.num_rows).t()
    return array_of_few(subject.plan, quietly(few.reshape, -1), None)


def shades_of(values: Any) -> list[int]:
    """Return the place of each element on a scale symmetric about 0."""
    with np.errstate(all="ignore"):
        is_nan, is_inf = np.isnan(values), np.isinf(values)
        size = np.abs(values) if values.dtype.kind == "c" else values
        size = size.astype(np.result_type(size.dtype, np.float64))
        is_on_scale = ~(is_nan | is_inf | np.isinf(size))
        placed = size[is_on_scale]
        limit = float(np.max(np.abs(placed), initial=0))
        # In two steps, since the reciprocal of a tiny limit is no float.
        shades = np.where(is_on_scale & (limit > 0), np.rint(size / (limit or 1.0) * FULL), 0)
    conditions = [is_nan, is_inf & (np.real(values) == -np.inf), is_inf, np.isinf(size)]
    shades = np.select(conditions, [NAN, NEGATIVE_INF, POSITIVE_INF, FULL], shades)
    return [int(shade) for shade in shades]

"""Which bytes an index needs of elements that lie in the order of their indices, without gaps."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.convert.plan import MAX_NDIM
from tensornp.core.lowlevel.attributes import class_name, is_array, is_subclass, is_tensor
from tensornp.errors import BadRequestError

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
MAX_GAP_NBYTES = 4096
"""Bytes between two that are wanted, up to which they are read too: disks give pages."""
_MAX_SPAN_NBYTES = 2**22
"""Bytes with gaps that are read at once."""


class Range(NamedTuple):
    """The indices of one dimension, upwards."""

    first: int
    num: int
    step: int


class Run(NamedTuple):
    """Bytes to read: from where, how many, and which part of the result they bring."""

    offset: int
    nbytes: int
    at: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """What basic indexing takes of an array whose neighbours lie `strides` bytes apart.

    `ranges` has the indices of each dimension, upwards; `final` is the index that makes the result of them: it turns
    around what was asked for downwards, and drops or adds dimensions.
    """

    strides: Shape
    itemsize: int
    ranges: tuple[Range, ...]
    final: tuple[Any, ...]

    @property
    def result_shape(self) -> Shape:
        """The shape of the result."""
        kept = iter(self.counts)
        sizes = [(item, 1 if item is None else next(kept)) for item in self.final]
        return tuple(size for item, size in sizes if not isinstance(item, int))

    @property
    def counts(self) -> Shape:
        """How many indices of each dimension are taken."""
        return tuple(one.num for one in self.ranges)

    @property
    def nbytes(self) -> int:
        """How many bytes are read."""
        return sum(run.nbytes for run in self.runs())

    @property
    def order(self) -> Shape:
        """The dimensions from the widest stride to the narrowest, in which the bytes lie."""
        return tuple(sorted(range(len(self.strides)), key=lambda axis: -self.strides[axis]))

    def runs(self) -> Iterator[Run]:
        """Yield what is to be read, in the order of the file; `at` counts in the `order` of dimensions."""
        if 0 in self.counts:
            return
        counts, steps = self._counts_and_steps()
        depth, num_joined, _ = self._joined(counts, steps)
        first = sum(one.first * step for one, step in zip(self.ranges, self.strides, strict=True))
        inner = self.itemsize + sum((n - 1) * step for n, step in zip(counts[depth:], steps[depth:], strict=True))
        lead = [range(0, n, num_joined if d == depth - 1 else 1) for d, n in enumerate(counts[:depth])]
        for places in product(*lead):
            count = min(num_joined, counts[depth - 1] - places[-1]) if depth else 1
            nbytes = inner + (count - 1) * (steps[depth - 1] if depth else 0)
            at = (*places[:-1], slice(places[-1], places[-1] + count)) if depth else ()
            yield Run(first + sum(i * step for i, step in zip(places, steps, strict=False)), nbytes, at)

    def read(self, read_into: Callable[[Array, int], None], dtype: np.dtype[Any]) -> Array:
        """Return the elements, which `read_into` brings: it fills an array of bytes from an offset on."""
        counts, steps = self._counts_and_steps()
        try:
            made = np.empty(counts, dtype)
        except ValueError:
            # Though it were empty: the other sizes count.
            raise BadRequestError(f"NumPy makes no array of shape {counts}; take fewer indices") from None
        _, num_joined, is_dense = self._joined(counts, steps)
        gaps = np.empty(0, np.uint8)
        for run in self.runs():
            part = made[(*run.at, ...)]
            if is_dense and num_joined == 1:
                read_into(part.reshape(-1).view(np.uint8), run.offset)
                continue
            gaps = gaps if len(gaps) >= run.nbytes else np.empty(run.nbytes, np.uint8)
            read_into(gaps[: run.nbytes], run.offset)
            part[...] = np.ndarray(part.shape, dtype, gaps, 0, steps[made.ndim - part.ndim :])
        order = self.order
        return np.asarray(made.transpose([order.index(axis) for axis in range(len(order))])[self.final])

    def _counts_and_steps(self) -> tuple[Shape, Shape]:
        """Return how many are taken of each dimension, and how many bytes lie between two, in the `order`."""
        order = self.order
        return (
            tuple(self.ranges[axis].num for axis in order),
            tuple(self.ranges[axis].step * self.strides[axis] for axis in order),
        )

    def _joined(self, counts: Shape, steps: Shape) -> tuple[int, int, bool]:
        """Return from where on all dimensions are read at once, how many indices of the one before, and if gapless."""
        span, is_dense = self.itemsize, True
        for d, step in reversed(list(enumerate(steps))):
            gap = step - span if counts[d] > 1 else 0
            if gap > MAX_GAP_NBYTES:
                return d + 1, 1, is_dense
            wider = span + (counts[d] - 1) * step
            if (gap or not is_dense) and wider > _MAX_SPAN_NBYTES:
                return d + 1, max(_MAX_SPAN_NBYTES // max(step, 1), 1), False
            span, is_dense = wider, is_dense and not gap
        return 0, 1, is_dense


def contiguous(shape: Shape) -> Shape:
    """Return the strides, in elements, of an array whose elements lie in the order of their indices."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def select(index: Any, shape: Shape, itemsize: int, strides: Shape | None = None) -> Selection:
    """Return what `index` takes: integers, slices, ``...`` and None, as NumPy's basic indexing.

    `strides` count elements; None: those of an array in the order of its indices.

    Raises
    ------
    BadRequestError
        For an index of another kind, of too many dimensions, or out of bounds.
    """
    items = _expanded(index if isinstance(index, tuple) else (index,), len(shape))
    if max(len(shape), len(items)) > MAX_NDIM:
        raise BadRequestError(f"{max(len(shape), len(items))} dimensions are more than NumPy has")
    ranges: list[Range] = []
    final: list[Any] = []
    for item in items:
        if item is None:
            final.append(None)
            continue
        axis = len(ranges)
        if isinstance(item, slice):
            taken = _slice_of(item, shape[axis], axis)
            is_turned = taken.step < 0
            low = taken[-1] if is_turned and len(taken) else taken.start
            # Of a single one the step says nothing, and may be larger than any number of bytes.
            ranges.append(Range(low, len(taken), abs(taken.step) if len(taken) > 1 else 1))
            final.append(slice(None, None, -1 if is_turned else None))
        else:
            ranges.append(Range(_place_of(item, shape[axis], axis), 1, 1))
            final.append(0)
    steps = tuple(step * itemsize for step in (strides if strides is not None else contiguous(shape)))
    return Selection(steps, itemsize, tuple(ranges), tuple(final))


def _expanded(items: tuple[Any, ...], ndim: int) -> list[Any]:
    """Return an item for each dimension, and None where there is to be a new one."""
    at = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(at) > 1:
        raise BadRequestError("an index has one '...' at most")
    num_taken = sum(item is not None and item is not Ellipsis for item in items)
    if num_taken > ndim:
        raise BadRequestError(f"an index of {num_taken} dimensions is too long for {ndim}")
    rest = [slice(None)] * (ndim - num_taken)
    middle = at[0] if at else len(items)
    return [*items[:middle], *rest, *items[middle + 1 :]]


def _slice_of(item: slice, size: int, axis: int) -> range:
    try:
        taken = range(*item.indices(size))
        len(taken)
        return taken
    except OverflowError:
        # A range has as many as there are addresses.
        raise BadRequestError(f"axis {axis} has {size:,} indices, more than any array") from None
    except (TypeError, ValueError) as error:
        raise BadRequestError(f"the slice of axis {axis} is none: {error}") from None


def _place_of(item: Any, size: int, axis: int) -> int:
    try:
        # Older NumPys take their own truth values, and warn.
        if isinstance(item, (bool, np.bool_)):
            raise TypeError
        place = operator.index(item)
    except TypeError:
        has_several = is_array(item) or is_tensor(item) or is_subclass(type(item), list)
        said = class_name(type(item)) + ("; read the rows first" if has_several else "")
        raise BadRequestError(f"an index takes integers, slices, '...' and None, not {said}") from None
    if not -size <= place < size:
        reach = f"has {size:,} indices" if size else "is empty"
        raise BadRequestError(f"index {place} is out of bounds: axis {axis} {reach}")
    return place % size

"""Index elements in a file, and read them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.text import quoted
from tensornp.core.tensor.strides import MAX_NDIM
from tensornp.errors import BadRequestError

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Ranges = tuple[range, ...]
"""The wanted indices of each dimension."""
MAX_GAP_NBYTES = 4096
"""Bytes between two wanted elements that are read too, since disks give pages."""
MAX_SPAN_NBYTES = 2**22
VALUES = "float32"
"""The dtype of decoded codes."""


class Taken(NamedTuple):
    """Ranges of indices, the shape of the result, and its items: None, a slice or an integer."""

    ranges: Ranges
    shape: Shape
    items: tuple[Any, ...]


def taken_by(index: Any, shape: Shape) -> Taken:
    """Return the ranges of an index of integers, slices, ``...`` and None, else BadRequestError."""
    items = index if isinstance(index, tuple) else (index,)
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    num_taken = sum(item is not None and item is not Ellipsis for item in items)
    if len(dots) > 1 or num_taken > len(shape):
        raise BadRequestError(f"index must have at most {len(shape)} dimensions and one '...', got {num_taken}")
    middle = dots[0] if dots else len(items)
    items = (*items[:middle], *[slice(None)] * (len(shape) - num_taken), *items[middle + 1 :])
    if len(items) > MAX_NDIM:
        raise BadRequestError(f"index must give at most {MAX_NDIM} dimensions, got {len(items)}")
    ranges: list[range] = []
    sizes: list[int] = []
    for item in items:
        if item is None:
            sizes.append(1)
            continue
        ranges.append(_range_of(item, shape[len(ranges)], len(ranges)))
        if isinstance(item, slice):
            sizes.append(len(ranges[-1]))
    return Taken(tuple(ranges), tuple(sizes), items)


def _range_of(item: Any, size: int, axis: int) -> range:
    try:
        if isinstance(item, slice):
            taken = range(size)[item]
            # The step between no two elements may be larger than any number of bytes.
            return taken if len(taken) > 1 else range(taken.start, taken.start + len(taken))
        if isinstance(item, (bool, np.bool_)):
            raise TypeError
        place = range(size)[operator.index(item)]
        return range(place, place + 1)
    except IndexError:
        raise BadRequestError(f"index {quoted(item)} is out of bounds: axis {axis} has {size:,} indices") from None
    except (TypeError, ValueError, OverflowError):
        cure = "take rows, and index the array with others"
        said = f"index must consist of integers, slices, '...' and None, got {type(item).__name__}"
        raise BadRequestError(f"{said} for axis {axis} of {size:,}; {cure}") from None


def as_slice(wanted: range) -> slice:
    stop = wanted.stop if wanted.step > 0 or wanted.stop >= 0 else None
    return slice(wanted.start, stop, wanted.step)


class Reads:
    """The reads that bring the elements in `ranges`, by strides in bytes, with gaps up to 4 KiB."""

    def __init__(self, ranges: Ranges, strides: Shape, itemsize: int) -> None:
        upwards = [one if one.step > 0 else one[::-1] for one in ranges]
        self._turned = tuple(slice(None, None, None if one.step > 0 else -1) for one in ranges)
        self._order = sorted(range(len(strides)), key=lambda axis: -strides[axis])
        self._counts = [len(ranges[axis]) for axis in self._order]
        self._steps = [upwards[axis].step * strides[axis] for axis in self._order]
        self._first = sum(one.start * step for one, step in zip(upwards, strides, strict=True))
        self._depth, self._num_joined = 0, 1
        self._span, self._is_dense = itemsize, True
        # The dimensions that one read brings, from the narrowest stride on.
        for depth in reversed(range(len(self._counts))):
            count, step = self._counts[depth], self._steps[depth]
            gap = step - self._span if count > 1 else 0
            wider = self._span + (count - 1) * step
            is_too_wide = (gap or not self._is_dense) and wider > MAX_SPAN_NBYTES
            if gap > MAX_GAP_NBYTES or is_too_wide:
                self._depth = depth + 1
                if gap <= MAX_GAP_NBYTES:
                    self._num_joined, self._is_dense = max(MAX_SPAN_NBYTES // max(step, 1), 1), False
                break
            self._span, self._is_dense = wider, self._is_dense and not gap

    def runs(self) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        """Yield offset, size and part of the result of each read; the result has dimensions by falling stride."""
        if 0 in self._counts:
            return
        depth, joined = self._depth, self._num_joined
        lead = [range(0, n, joined if d == depth - 1 else 1) for d, n in enumerate(self._counts[:depth])]
        for places in product(*lead):
            offset = self._first + sum(i * step for i, step in zip(places, self._steps, strict=False))
            if not depth:
                yield offset, self._span, ()
                continue
            count = min(joined, self._counts[depth - 1] - places[-1])
            nbytes = self._span + (count - 1) * self._steps[depth - 1]
            yield offset, nbytes, (*places[:-1], slice(places[-1], places[-1] + count))

    def bring(self, read_into: Callable[[Array, int], None], dtype: np.dtype[Any]) -> Array:
        """Return the elements; `read_into` fills an array of bytes from an offset on."""
        made = np.empty(self._counts, dtype)
        gaps = np.empty(0, np.uint8)
        for offset, nbytes, at in self.runs():
            part = made[(*at, ...)]
            if self._is_dense and self._num_joined == 1:
                read_into(part.reshape(-1).view(np.uint8), offset)
                continue
            gaps = gaps if len(gaps) >= nbytes else np.empty(nbytes, np.uint8)
            read_into(gaps[:nbytes], offset)
            part[...] = np.ndarray(part.shape, dtype, gaps, 0, self._steps[made.ndim - part.ndim :])
        return made.transpose([self._order.index(axis) for axis in range(made.ndim)])[(*self._turned, ...)]

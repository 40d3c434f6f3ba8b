"""Which bytes bring the elements in some ranges of the indices, whatever lies between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tensornp.errors import BadRequestError
from tensornp.models.reading.selection import Array, Ranges, Shape

MAX_GAP_NBYTES = 4096
"""Bytes between two that are wanted, up to which they are read too: disks give pages."""
_MAX_SPAN_NBYTES = 2**22
"""Bytes with gaps that are read at once."""


class Run(NamedTuple):
    """Bytes to read: from where, how many, and which part of the result they bring."""

    offset: int
    nbytes: int
    at: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Reads:
    """The pieces of a file that bring the elements in some ranges, in the order in which they lie.

    Attributes
    ----------
    order : tuple of int
        The dimensions from the widest stride to the narrowest.
    counts, steps : tuple of int
        How many elements of each are taken, and the bytes between two, in that order.
    itemsize, first : int
        Bytes of an element, and where the first one begins.
    depth, num_joined : int
        From which dimension on all are read at once, and how many indices of the one before.
    is_dense : bool
        Whether nothing else is read with them.
    """

    order: Shape
    counts: Shape
    steps: Shape
    itemsize: int
    first: int
    depth: int
    num_joined: int
    is_dense: bool

    @classmethod
    def of(cls, ranges: Ranges, strides: Shape, itemsize: int) -> Reads:
        """Return the reads of elements whose neighbours lie `strides` bytes apart in each dimension."""
        order = tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))
        counts = tuple(ranges[axis].num for axis in order)
        steps = tuple(ranges[axis].step * strides[axis] for axis in order)
        first = sum(one.first * step for one, step in zip(ranges, strides, strict=True))
        return cls(order, counts, steps, itemsize, first, *_joined(counts, steps, itemsize))

    @property
    def num(self) -> int:
        """How many pieces are read."""
        if 0 in self.counts:
            return 0
        lead = math.prod(self.counts[: self.depth])
        return lead // self.counts[self.depth - 1] * self._num_in_row if self.depth else 1

    @property
    def nbytes(self) -> int:
        """How many bytes are read, those between the wanted ones too."""
        if 0 in self.counts:
            return 0
        if not self.depth:
            return self._inner
        n, step = self.counts[self.depth - 1], self.steps[self.depth - 1]
        of_row = self._num_in_row * self._inner + (n - self._num_in_row) * step
        return math.prod(self.counts[: self.depth - 1]) * of_row

    @property
    def _num_in_row(self) -> int:
        """How many pieces bring all indices of the dimension before those that are read at once."""
        return -(-self.counts[self.depth - 1] // self.num_joined)

    @property
    def _inner(self) -> int:
        """Bytes from the first to the last element of the dimensions that are read at once."""
        inner = zip(self.counts[self.depth :], self.steps[self.depth :], strict=True)
        return self.itemsize + sum((n - 1) * step for n, step in inner)

    def runs(self) -> Iterator[Run]:
        """Yield what is to be read, in the order of the file; `at` counts in the `order` of dimensions."""
        if 0 in self.counts:
            return
        counts, steps, depth, inner = self.counts, self.steps, self.depth, self._inner
        lead = [range(0, n, self.num_joined if d == depth - 1 else 1) for d, n in enumerate(counts[:depth])]
        for places in product(*lead):
            count = min(self.num_joined, counts[depth - 1] - places[-1]) if depth else 1
            nbytes = inner + (count - 1) * (steps[depth - 1] if depth else 0)
            at = (*places[:-1], slice(places[-1], places[-1] + count)) if depth else ()
            yield Run(self.first + sum(i * step for i, step in zip(places, steps, strict=False)), nbytes, at)

    def bring(self, read_into: Callable[[Array, int], None], dtype: np.dtype[Any]) -> Array:
        """Return the elements in the ranges, which `read_into` brings: it fills an array of bytes from an offset on."""
        try:
            made = np.empty(self.counts, dtype)
        except ValueError:
            # Though it were empty: the other sizes count.
            raise BadRequestError(f"NumPy makes no array of shape {self.counts}; take fewer indices") from None
        gaps = np.empty(0, np.uint8)
        for run in self.runs():
            part = made[(*run.at, ...)]
            if self.is_dense and self.num_joined == 1:
                read_into(part.reshape(-1).view(np.uint8), run.offset)
                continue
            gaps = gaps if len(gaps) >= run.nbytes else np.empty(run.nbytes, np.uint8)
            read_into(gaps[: run.nbytes], run.offset)
            part[...] = np.ndarray(part.shape, dtype, gaps, 0, self.steps[made.ndim - part.ndim :])
        return made.transpose([self.order.index(axis) for axis in range(len(self.order))])


def _joined(counts: Shape, steps: Shape, itemsize: int) -> tuple[int, int, bool]:
    """Return from where on all dimensions are read at once, how many indices of the one before, and if gapless."""
    span, is_dense = itemsize, True
    for d, step in reversed(list(enumerate(steps))):
        gap = step - span if counts[d] > 1 else 0
        if gap > MAX_GAP_NBYTES:
            return d + 1, 1, is_dense
        wider = span + (counts[d] - 1) * step
        if (gap or not is_dense) and wider > _MAX_SPAN_NBYTES:
            return d + 1, max(_MAX_SPAN_NBYTES // max(step, 1), 1), False
        span, is_dense = wider, is_dense and not gap
    return 0, 1, is_dense

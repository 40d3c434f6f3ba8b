"""Which rows and columns of a weight are zero throughout, or stand out, by their norms from the same pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.values.stats.fast import Kernels
from tensornp.core.values.stats.figures import scratch

Array = np.ndarray[Any, Any]
MIN_RATIO = 10.0
"""How many times the median norm a channel has that stands out."""
_MIN_CHANNELS, _MAX_CHANNELS = 8, 2**18
"""Along an axis of fewer a median says little; of more, what a task finds would be of no bounded size."""
_AXES = (0, 1)
"""Of a weight of torch: what goes out, and what comes in."""
_MAX_TOLD = 5
_SQUARES_SLOT = 3
_LEAST_SUM = {4: 1e-28, 8: 1e-290}
"""A smaller sum of squares may lack some that are too small for a float of so many bytes."""


@dataclass(frozen=True, slots=True)
class ChannelNorms:
    """What stands out along one axis of a weight, among the norms of its slices.

    Attributes
    ----------
    axis, num : int
        The axis, and how many channels it has: of a matrix, axis 0 has the rows and axis 1 the columns.
    num_dead : int
        Channels of zeros alone, if there are others.
    dead : tuple of int
        The first of them.
    num_outliers : int
        Channels whose norm is at least 10 times the median of those that are not dead.
    outliers : tuple of (int, float)
        Those of the largest norms, and how many times the median these are.
    """

    axis: int
    num: int
    num_dead: int
    dead: tuple[int, ...]
    num_outliers: int
    outliers: tuple[tuple[int, float], ...]


class Along(NamedTuple):
    """How the channels of an axis lie: each of them `inner` elements in a row, `size` of them again and again."""

    axis: int
    size: int
    inner: int


class Sums(NamedTuple):
    """The sums of squares of the channels from `first` on."""

    first: int
    squares: Array


def layout_of(shape: tuple[int, ...], order: tuple[int, ...] | None, dtype: str) -> tuple[Along, ...]:
    """Return how the channels of a weight lie whose elements follow one another in this order of dimensions.

    Nothing where norms of channels would say nothing: of a vector, of integers.
    """
    if order is None or len(shape) < 2 or not dtype.startswith(("float", "bfloat")):
        return ()
    found = []
    for axis in _AXES:
        inner = math.prod(shape[d] for d in order[order.index(axis) + 1 :])
        if _MIN_CHANNELS <= shape[axis] <= _MAX_CHANNELS and math.prod(shape) > shape[axis]:
            found.append(Along(axis, shape[axis], inner))
    return tuple(found)


class ChannelSums:
    """Adds up the squares of blocks that follow one another, by channel."""

    def __init__(self, layout: tuple[Along, ...], kernels: Kernels | None = None) -> None:
        self._layout, self._kernels = layout, kernels
        self._squares = [np.zeros(along.size) for along in layout]
        # From which channel on, and up to which, any was met.
        self._met = [(along.size, 0) for along in layout]

    def add(self, values: Array, first: int) -> None:
        """Take a block of floats, whose first element is that of this number."""
        if not self._layout:
            return
        if self._kernels is not None and values.dtype == np.float32:
            for along, sums in zip(self._layout, self._squares, strict=True):
                self._kernels.add_squares(values, first, along.size, along.inner, sums)
            self._met = [(0, along.size) for along in self._layout]
            return
        squares = scratch(values.size, _SQUARES_SLOT, values.dtype)
        np.multiply(values, values, out=squares)
        least = _LEAST_SUM[values.dtype.itemsize]
        for i, along in enumerate(self._layout):
            for at, times, channel, num, length in _pieces(along, first, values.size):
                part = slice(at, at + times * num * length)
                sums = _added(squares[part], times, num, length)
                if not (sums.min() >= least and sums.max() < np.inf):
                    sums = _added_wide(values[part], times, num, length)
                self._squares[i][channel : channel + num] += sums
                low, high = self._met[i]
                self._met[i] = min(low, channel), max(high, channel + num)

    def finish(self) -> tuple[Sums, ...]:
        """Return the sums of each axis."""
        met = zip(self._met, self._squares, strict=True)
        return tuple(Sums(low, squares[low:high].copy()) for (low, high), squares in met)


def _pieces(along: Along, first: int, count: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Part a run of elements: where, how many times, from which channel on, how many channels, how long each."""
    _, size, inner = along
    period, at = size * inner, 0
    while at < count:
        channel, inside = divmod((first + at) % period, inner)
        left = count - at
        if inside or left < inner:
            times, num, length = 1, 1, min(inner - inside, left)
        elif channel or left < period:
            times, num, length = 1, min(size - channel, left // inner), inner
        else:
            times, num, length = left // period, size, inner
        yield at, times, channel, num, length
        at += times * num * length


def _added(squares: Array, times: int, num: int, length: int) -> Array:
    """Return the sums of each channel; along the memory first, where that is a long way."""
    rows = squares.reshape(times, num * length)
    whole = np.add.reduce(rows, axis=0) if times > 1 else rows[0]
    return np.add.reduce(whole.reshape(num, length), axis=1) if length > 1 else np.array(whole)


def _added_wide(values: Array, times: int, num: int, length: int) -> Array:
    """Return the sums of squares of float32 whatever their size; NaN where a float64 does not hold them either."""
    wide = values.astype(np.float64)
    sums = _added(wide * wide, times, num, length)
    # Zeros alone give zero: anything else was lost.
    lost = np.flatnonzero(sums < _LEAST_SUM[8])
    sums[lost[values.reshape(times, num, length)[:, lost].any(axis=(0, 2))]] = np.nan
    return sums


def norms_of(layout: tuple[Along, ...], found: Iterable[tuple[Sums, ...]]) -> tuple[ChannelNorms, ...]:
    """Return what stands out along each axis, from the sums of all tasks in their order."""
    squares = [np.zeros(along.size) for along in layout]
    for of_task in found:
        for whole, part in zip(squares, of_task, strict=True):
            whole[part.first : part.first + len(part.squares)] += part.squares
    told = (_told(along, np.sqrt(whole)) for along, whole in zip(layout, squares, strict=True))
    return tuple(one for one in told if one is not None)


def _told(along: Along, norms: Array) -> ChannelNorms | None:
    is_dead = norms == 0
    dead = np.flatnonzero(is_dead)
    alive = norms[~is_dead & np.isfinite(norms)]
    if not len(alive):
        return None
    limit = MIN_RATIO * float(np.median(alive))
    out = np.flatnonzero(np.isfinite(norms) & (norms >= limit) & ~is_dead)
    largest = out[np.argsort(-norms[out], kind="stable")][:_MAX_TOLD]
    if not len(dead) and not len(out):
        return None
    ratios = tuple((int(i), float(norms[i] / limit * MIN_RATIO)) for i in largest)
    return ChannelNorms(along.axis, along.size, len(dead), tuple(dead[:_MAX_TOLD].tolist()), len(out), ratios)

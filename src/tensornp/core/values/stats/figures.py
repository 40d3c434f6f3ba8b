"""Compute the statistics of blocks, of the indices of an axis, and of the channels of a weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.tensor.strides import PIECE_NUMEL, pieces_of
from tensornp.core.values.sources import Source
from tensornp.core.values.stats.record import MIN_RATIO, ChannelNorms, TensorStats
from tensornp.errors import TooLargeError

Array = np.ndarray[Any, Any]
Number = int | float
_ROW_NUMEL = 2**13
MAX_CANCELLED = 1e4
"""Ratio of the squared mean to the variance up to which the mean square gives the variance."""
Walked = tuple[Any, Any, int, Number, float]
"""The extremes of numbers, how many are zero, their sum and the sum of their squares."""


def figures_of(numbers: Array, walk: Callable[[Array], Walked], times: int) -> TensorStats:
    """Return the statistics of numbers that count `times` times each."""
    count, nan, posinf, neginf = numbers.size * times, 0, 0, 0
    low, high, zeros, total, squares = walk(numbers)
    # One end is not finite if one number is not.
    if not (np.isfinite(low) and np.isfinite(high)):
        nan = int(np.count_nonzero(np.isnan(numbers))) * times
        posinf, neginf = (int(np.count_nonzero(numbers == limit)) * times for limit in (np.inf, -np.inf))
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return TensorStats(count, nan, posinf, neginf)
        low, high, zeros, total, squares = walk(numbers)
    # No zero has a sign here.
    low, high = low.item() + 0, high.item() + 0
    mean, variance = float(low), 0.0
    if low != high:
        mean = total / numbers.size
        variance = squares / numbers.size - mean * mean
        if not variance * MAX_CANCELLED > mean * mean:
            variance = sum(sum_of_squares(some.astype(np.float64) - mean) for some in pieces_of(numbers)) / numbers.size
    return TensorStats(count, nan, posinf, neginf, zeros * times, low, high, total * times, mean, math.sqrt(variance))


def walk(numbers: Array) -> Walked:
    low, high, zeros, squares = numbers[0], numbers[0], 0, 0.0
    total: Number = 0
    # One buffer for all: the system maps large temporary arrays anew each time.
    buffer = np.empty(min(numbers.size, PIECE_NUMEL))
    for some in pieces_of(numbers):
        low, high = some.min(initial=low), some.max(initial=high)
        if low <= 0 <= high:
            # Counting the zeros of a comparison is four times as fast as counting those of floats.
            zeros += int(np.count_nonzero(some == 0))
        wide = buffer[: some.size]
        wide[:] = some
        squares += sum_of_squares(wide)
        if some.dtype.kind == "f":
            # A fifth faster than `sum`.
            total += float(np.einsum("i->", wide))
        elif some.itemsize < 8:
            total += int(some.sum(dtype=np.int64))
        else:
            # The sums of both halves fit 64 bits.
            total += int((some >> 32).sum()) * 2**32 + int((some & 0xFFFFFFFF).sum())
    return low, high, zeros, total, squares


def sum_of_squares(wide: Array) -> float:
    """Return the sum of squares by dot products of rows, four times as fast as `einsum`.

    OpenBLAS takes several threads above 10,000 elements, and these and torch's wait for each other.
    """
    num_whole = wide.size // _ROW_NUMEL * _ROW_NUMEL
    rows, rest = wide[:num_whole].reshape(-1, _ROW_NUMEL), wide[num_whole:]
    return float(np.vecdot(rows, rows).sum() + np.vecdot(rest, rest))


@np.errstate(all="ignore")
def modulus_of(numbers: Array) -> Array:
    """Return absolute values as float64: NaN if one part is, the largest float if a finite one overflows."""
    wide = numbers.astype(np.complex128, copy=False)
    sizes = np.hypot(wide.real, wide.imag)
    if sizes.size and not np.isfinite(sizes.max()):
        sizes[np.isnan(wide.real) | np.isnan(wide.imag)] = np.nan
        sizes[np.isinf(sizes) & np.isfinite(wide)] = np.finfo(np.float64).max
    return sizes


MAX_INDICES = 2**20


class _Columns:
    """Statistics of each index, merged block by block (Chan, Golub and LeVeque, 1979)."""

    def __init__(self, size: int, dtype: np.dtype[Any]) -> None:
        self._ends = (np.iinfo(dtype).max, np.iinfo(dtype).min) if dtype.kind in "iu" else (np.inf, -np.inf)
        self.low, self.high = (np.full(size, end, dtype) for end in self._ends)
        self.counts = np.zeros((5, size), np.int64)
        self.finite = np.zeros(size, np.int64)
        self.mean, self.deviations, self.total = np.zeros((3, size))

    def add(self, values: Array, at: slice) -> None:
        """Add a block of shape (indices, elements); blocks of finite numbers take a quarter of the time."""
        finite = np.isfinite(values)
        is_whole, is_zero = bool(finite.all()), values == 0
        low = high = values
        wide, num = values.astype(np.float64), np.full(len(values), values.shape[1])
        self.counts[0, at] += num
        if not is_whole:
            self.counts[1:4, at] += [test.sum(1) for test in (np.isnan(values), values == np.inf, values == -np.inf)]
            low, high = (np.where(finite, values, np.array(end, values.dtype)) for end in self._ends)
            wide[~finite], num = 0, finite.sum(1)
        if is_zero.any():
            self.counts[4, at] += is_zero.sum(1)
        self.low[at] = np.minimum(self.low[at], low.min(1))
        self.high[at] = np.maximum(self.high[at], high.max(1))
        total = wide.sum(1)
        mean = total / np.maximum(num, 1)
        wide -= mean[:, None]
        if not is_whole:
            wide[~finite] = 0
        share = num / np.maximum(self.finite[at] + num, 1)
        difference = np.where(num, mean - self.mean[at], 0)
        self.deviations[at] += np.einsum("ij,ij->i", wide, wide) + difference**2 * self.finite[at] * share
        self.mean[at] += difference * share
        self.total[at] += total
        self.finite[at] += num

    def stats(self, factor: int) -> TensorStats:
        has = self.finite > 0
        low, high, total = self.low, self.high, self.total * factor
        if not has.all():
            low, high = (np.where(has, ends.astype(np.float64), math.nan) for ends in (low, high))
        if low.dtype.kind in "iu" and np.abs(total).max(initial=0) < 2**53:
            total = total.astype(np.int64)
        std = np.sqrt(self.deviations / np.maximum(self.finite, 1))
        mean, std = (np.where(has, numbers, math.nan) for numbers in (self.mean, std))
        count, nan, posinf, neginf, zeros = self.counts * factor
        return TensorStats(count, nan, posinf, neginf, zeros, low, high, total, mean, std)


@np.errstate(all="ignore")
def stats_by_axis(source: Source) -> TensorStats:
    (part,) = source.parts
    assert part.axis is not None and source.axis is not None
    size = source.shape[source.axis]
    if size > MAX_INDICES:
        raise TooLargeError(f"axis has {size:,} indices, and at most {MAX_INDICES:,} are read; choose another axis")
    columns: _Columns | None = None
    blocks = list(part.blocks())
    for block, numbers in zip(blocks, part.read(blocks), strict=True):
        sizes = modulus_of(numbers) if numbers.dtype.kind == "c" else numbers
        columns = columns or _Columns(size, sizes.dtype)
        packed = size // max(part.shape[part.axis], 1)
        num, first = block.shape[part.axis] * packed, block.start[part.axis] * packed
        shape = math.prod(block.shape[: part.axis]), num, -1
        columns.add(sizes.reshape(shape).swapaxes(0, 1).reshape(num, -1), slice(first, first + num))
    found = (columns or _Columns(size, np.dtype(np.float64))).stats(part.times)
    return replace(found, scope=source.scope, is_complex=source.dtype.startswith("complex"))


_MIN_CHANNELS, _MAX_CHANNELS = 8, 2**18
"""A median of fewer says little; more would make the result of a task large."""
_MAX_TOLD = 5


def layout_of(shape: tuple[int, ...], order: tuple[int, ...] | None, dtype: str) -> tuple[tuple[int, int, int], ...]:
    """Return axis, size and elements of an index for the channels of a float weight in this order."""
    if order is None or len(shape) < 2 or not dtype.startswith(("float", "bfloat")):
        return ()
    return tuple(
        (axis, shape[axis], math.prod(shape[d] for d in order[order.index(axis) + 1 :]))
        for axis in (0, 1)
        if _MIN_CHANNELS <= shape[axis] <= _MAX_CHANNELS and math.prod(shape) > shape[axis]
    )


def add_by_index(sums: Array, numbers: Array, start: int, inner: int) -> None:
    size, runs = len(sums), numbers
    if inner > 1:
        ends = np.arange(inner - start % inner, numbers.size, inner)
        runs = np.add.reduceat(numbers, np.concatenate(([0], ends)))
    first = start // inner % size
    head, rest = runs[: size - first], runs[size - first :]
    whole = rest.size // size * size
    sums[first : first + head.size] += head
    sums += rest[:whole].reshape(-1, size).sum(0)
    sums[: rest.size - whole] += rest[whole:]


def norms_of(layout: tuple[tuple[int, int, int], ...], found: Iterable[tuple[Array, ...]]) -> tuple[ChannelNorms, ...]:
    squares = [np.zeros(size) for _, size, _ in layout]
    for of_task in found:
        for whole, part in zip(squares, of_task, strict=True):
            np.add(whole, part, out=whole)
    told = []
    for (axis, size, _), whole in zip(layout, squares, strict=True):
        norms = np.sqrt(whole)
        dead = np.flatnonzero(norms == 0)
        alive = (norms > 0) & np.isfinite(norms)
        limit = MIN_RATIO * float(np.median(norms[alive])) if alive.any() else math.inf
        out = np.flatnonzero(alive & (norms >= limit))
        if alive.any() and (len(dead) or len(out)):
            largest = out[np.argsort(-norms[out], kind="stable")][:_MAX_TOLD]
            ratios = tuple((int(i), float(norms[i] / limit * MIN_RATIO)) for i in largest)
            first = tuple(dead[:_MAX_TOLD].tolist())
            told.append(ChannelNorms(axis, size, len(dead), first, len(out), ratios))
    return tuple(told)

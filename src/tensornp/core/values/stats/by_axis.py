"""Statistics of each index of one axis: the outlier among channels, the dead row."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.values.sources import Source
from tensornp.core.values.stats.figures import modulus_of
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import TooLargeError

Array = np.ndarray[Any, Any]
MAX_INDICES = 2**20
"""Indices of an axis at most."""


class _Columns:
    """Statistics of each index, merged block by block (Chan, Golub and LeVeque, 1979)."""

    def __init__(self, size: int, dtype: np.dtype[Any]) -> None:
        self.low, self.high = np.zeros(size, dtype), np.zeros(size, dtype)
        self.count, self.nan, self.posinf, self.neginf, self.zeros, self.finite = np.zeros((6, size), np.int64)
        self.mean, self.deviations, self.total = np.zeros((3, size))

    def add(self, values: Array, shown: Array, at: slice) -> None:
        """Add a block of shape (indices, elements)."""
        finite = shown & np.isfinite(values)
        is_whole = bool(finite.all())
        num = finite.sum(1)
        self.count[at] += shown.sum(1)
        if not is_whole and values.dtype.kind == "f":
            self.nan[at] += (shown & np.isnan(values)).sum(1)
            self.posinf[at] += (shown & (values == np.inf)).sum(1)
            self.neginf[at] += (shown & (values == -np.inf)).sum(1)
        if not is_whole:
            # An element that is hidden or not finite counts as the first finite one of its index.
            values = np.where(finite, values, np.take_along_axis(values, finite.argmax(1)[:, None], 1))
        is_zero = values == 0
        if is_zero.any():
            self.zeros[at] += (finite & is_zero).sum(1)
        has, is_first = num > 0, self.finite[at] == 0
        low, high = values.min(1), values.max(1)
        self.low[at] = np.where(has, np.where(is_first, low, np.minimum(self.low[at], low)), self.low[at])
        self.high[at] = np.where(has, np.where(is_first, high, np.maximum(self.high[at], high)), self.high[at])
        wide = values.astype(np.float64)
        if not is_whole:
            wide[~finite] = 0
        total = wide.sum(1)
        mean = total / np.maximum(num, 1)
        wide -= mean[:, None]
        if not is_whole:
            wide[~finite] = 0
        share = num / np.maximum(self.finite[at] + num, 1)
        difference = np.where(has, mean - self.mean[at], 0)
        self.deviations[at] += np.einsum("ij,ij->i", wide, wide) + difference**2 * self.finite[at] * share
        self.mean[at] += difference * share
        self.total[at] += total
        self.finite[at] += num

    def stats(self, factor: int, scope: str) -> TensorStats:
        """Return the statistics as arrays, each element counted `factor` times."""
        has = self.finite > 0
        std = np.sqrt(self.deviations / np.maximum(self.finite, 1))
        count, nan, posinf, neginf, zeros = (
            one * factor for one in (self.count, self.nan, self.posinf, self.neginf, self.zeros)
        )
        low, high, total = self.low, self.high, self.total * factor
        if not has.all():
            low, high = (np.where(has, ends.astype(np.float64), math.nan) for ends in (low, high))
        if low.dtype.kind in "iu" and np.abs(total).max(initial=0) < 2**53:
            total = total.astype(np.int64)
        mean, std = (np.where(has, numbers, math.nan) for numbers in (self.mean, std))
        return TensorStats(count, nan, posinf, neginf, zeros, low, high, total, mean, std, scope)


def stats_by_axis(source: Source) -> TensorStats:
    """Return the statistics of a source along its axis, in float64."""
    (part,) = source.parts
    assert part.axis is not None and source.axis is not None
    size = source.shape[source.axis]
    if size > MAX_INDICES:
        raise TooLargeError(f"axis has {size:,} indices, and at most {MAX_INDICES:,} are read; choose another axis")
    columns: list[_Columns] = []
    blocks = list(part.blocks())
    for block, numbers in zip(blocks, part.read(blocks), strict=True):
        several = [modulus_of(numbers), numbers.real, numbers.imag] if numbers.dtype.kind == "c" else [numbers]
        columns = columns or [_Columns(size, one.dtype) for one in several]
        packed = source.shape[source.axis] // max(part.shape[part.axis], 1)
        num = block.shape[part.axis] * packed
        shape = math.prod(block.shape[: part.axis]), num, -1
        first = block.start[part.axis] * packed
        for one, values in zip(columns, several, strict=True):
            rows = np.ma.asanyarray(values).reshape(shape).swapaxes(0, 1).reshape(num, -1)
            one.add(rows.data, ~np.ma.getmaskarray(rows), slice(first, first + num))
    found = [one.stats(part.times, source.scope) for one in columns or [_Columns(size, np.dtype(np.float64))]]
    if source.is_masked:
        scope = f"{int(found[0].count.sum()):,} of {source.numel:,} shown"
        found = [replace(one, scope=scope) for one in found]
    return replace(found[0], real=found[1], imag=found[2]) if len(found) > 1 else found[0]

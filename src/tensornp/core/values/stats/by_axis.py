"""The figures of each index of one axis: which channel is the outlier, and which row is dead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.collector import uncollected
from tensornp.core.memory.strided import Block
from tensornp.core.values.reading.supply import Supply
from tensornp.core.values.stats.figures import modulus_of
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import TooLargeError

Array = np.ndarray[Any, Any]
MAX_INDICES = 2**20
"""Indices of an axis of which there are figures at most."""
_SMALL, _LARGE = 1e-140, 1e140
_OTHERS = (0, 2)
"""The dimensions of a block, but for that of the indices."""
_COUNTED = ("count", "nan", "posinf", "neginf", "zeros")


@dataclass
class _Columns:
    """The figures so far, one for each index."""

    count: Array
    nan: Array
    posinf: Array
    neginf: Array
    zeros: Array
    finite: Array
    low: Array
    high: Array
    total: Array
    halves: Array
    mean: Array
    squares: Array

    @classmethod
    def empty(cls, size: int, dtype: str) -> _Columns:
        is_integer = dtype.startswith(("int", "uint", "bool"))
        kind = np.dtype(dtype if dtype == "uint64" else np.int64) if is_integer else np.dtype(np.float64)
        ends = (np.iinfo(kind).max, np.iinfo(kind).min) if is_integer else (np.inf, -np.inf)
        low, high = (np.full(size, limit, kind) for limit in ends)
        count, nan, posinf, neginf, zeros, finite = (np.zeros(size, np.int64) for _ in range(6))
        total, mean, squares = (np.zeros(size, np.longdouble) for _ in range(3))
        halves = np.zeros((2, size), np.int64)
        return cls(count, nan, posinf, neginf, zeros, finite, low, high, total, halves, mean, squares)

    def add(self, values: Array, hidden: Array | None, first: int) -> None:
        """Add a block of shape (before, indices, after), whose first index is `first`."""
        at = slice(first, first + values.shape[1])
        is_integer = values.dtype.kind in "iu"
        shown = np.ones(values.shape, bool) if hidden is None else ~hidden
        finite = shown if is_integer else shown & np.isfinite(values)
        num = finite.sum(_OTHERS)
        self.count[at] += shown.sum(_OTHERS)
        self.finite[at] += num
        if not is_integer:
            self.nan[at] += (shown & np.isnan(values)).sum(_OTHERS)
            self.posinf[at] += (shown & (values == np.inf)).sum(_OTHERS)
            self.neginf[at] += (shown & (values == -np.inf)).sum(_OTHERS)
        self.zeros[at] += (shown & (values == 0)).sum(_OTHERS)
        bottom, top = (np.iinfo(values.dtype).min, np.iinfo(values.dtype).max) if is_integer else (-np.inf, np.inf)
        low, high = (
            reduce(values, axis=_OTHERS, initial=fill, where=finite)
            for reduce, fill in ((np.min, top), (np.max, bottom))
        )
        has = num > 0
        np.minimum(self.low[at], low, out=self.low[at], where=has)
        np.maximum(self.high[at], high, out=self.high[at], where=has)
        self._add_moments(np.where(finite, values, 0), finite, num, at)

    def _add_moments(self, values: Array, finite: Array, num: Array, at: slice) -> None:
        """Add the sums, and those of squares, of values that are zero where they are not finite."""
        base: Array = np.zeros(values.shape[1])
        if values.dtype.kind in "iu":
            # Both halves of each have a sum of 64 bits.
            wide = values.astype(self.low.dtype, copy=False)
            self.halves[0, at] += (wide >> 32).sum(_OTHERS, dtype=np.int64)
            self.halves[1, at] += (wide & 0xFFFFFFFF).sum(_OTHERS, dtype=np.int64)
            if values.itemsize == 8:
                # Seen from the smallest, where the distance is a float exactly; it has 64 bits without a sign.
                base = np.where(num > 0, self.low[at], 0).astype(values.dtype)
                values = np.where(finite, (values - base[:, None]).view(np.uint64), 0)
        # Where a float64 does not hold the squares, a longer float does, if there is one.
        is_extreme = values.dtype == np.float64 and _has_extremes(values)
        moved: Any = values.astype(np.longdouble if is_extreme else np.float64)
        sums = moved.sum(_OTHERS)
        self.total[at] += sums
        mean = sums / np.maximum(num, 1)
        moved -= mean[:, None]
        moved[~finite] = 0
        squares = np.einsum("abc,abc->b", moved, moved)
        mean = mean + base.astype(np.longdouble)
        before, after = self.finite[at] - num, np.maximum(self.finite[at], 1)
        delta = mean - self.mean[at]
        # Chan, Golub and LeVeque (1979).
        self.squares[at] += np.where(num > 0, squares + delta * delta * before * num / after, 0)
        self.mean[at] += np.where(num > 0, delta * num / after, 0)

    def stats(self, factor: int, scope: str) -> TensorStats:
        """Return the figures as arrays, each element meant `factor` times."""
        has = self.finite > 0
        counted: dict[str, Any] = {name: getattr(self, name) * factor for name in _COUNTED}
        low, high, total = self.low, self.high, self.total * factor
        if low.dtype.kind in "iu":
            total = (self.halves[0].astype(object) * 2**32 + self.halves[1].astype(object)) * factor
        # Some are too large for a float64.
        with np.errstate(over="ignore"):
            std = np.sqrt(self.squares / np.maximum(self.finite, 1))
            mean, std = (np.where(has, values, np.nan).astype(np.float64) for values in (self.mean, std))
            total = _tidy(total)
        if not has.all():
            low, high = (np.where(has, values.astype(np.float64), np.nan) for values in (low, high))
        return TensorStats(**counted, min=low, max=high, sum=total, mean=mean, std=std, scope=scope)


def _has_extremes(values: Array) -> bool:
    """Return whether the squares of some index do not fit a float64."""
    size = np.abs(values).max((0, 2), initial=0)
    return bool(((size > 0) & ((size < _SMALL) | (size > _LARGE))).any())


def _tidy(values: Array) -> Array:
    """Return integers as int64 where they fit, and floats as float64."""
    if values.dtype != object:
        return values.astype(np.float64)
    try:
        return values.astype(np.int64)
    except (OverflowError, ValueError):
        return values


def stats_by_axis(supply: Supply) -> TensorStats:
    """Return the statistics of the one part of `supply` along its axis."""
    (part,) = supply.parts
    assert part.axis is not None and supply.axis is not None
    size = supply.shape[supply.axis]
    if size > MAX_INDICES:
        raise TooLargeError(f"axis has {size:,} indices, and figures are told of {MAX_INDICES:,}; choose another axis")
    is_complex = supply.dtype.startswith("complex")
    columns = [_Columns.empty(size, supply.dtype) for _ in range(3 if is_complex else 1)]

    def use(values: Array, block: Block) -> None:
        for one, numbers in zip(columns, _told(values), strict=True):
            _add(one, numbers, block, part.axis or 0)

    with threads.GATE, uncollected():
        part.use_each(list(part.blocks()), use, in_place=part.can_be_read_in_place())
    found = [one.stats(part.times, supply.scope) for one in columns]
    if supply.is_masked:
        scope = f"{int(found[0].count.sum()):,} of {supply.numel:,} shown"
        found = [replace(one, scope=scope) for one in found]
    return replace(found[0], real=found[1], imag=found[2]) if is_complex else found[0]


def _told(values: Array) -> list[Array]:
    """Return the numbers of which there are figures: of complex ones the modulus and the parts."""
    if values.dtype.kind != "c":
        return [values]
    real, imag = np.ascontiguousarray(values.real), np.ascontiguousarray(values.imag)
    return [modulus_of(real.reshape(-1), imag.reshape(-1)).reshape(real.shape), real, imag]


def _add(columns: _Columns, values: Array, block: Block, axis: int) -> None:
    hidden = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    data = np.asarray(values.data if hidden is not None else values)
    if data.dtype.kind == "b":
        data = data.view(np.uint8)
    before = int(np.prod(data.shape[:axis], dtype=np.int64))
    shape = before, data.shape[axis], data.size // max(before * data.shape[axis], 1)
    per_element = data.shape[axis] // max(block.shape[axis], 1)
    mask = hidden.reshape(shape) if hidden is not None else None
    columns.add(data.reshape(shape), mask, block.start[axis] * per_element)

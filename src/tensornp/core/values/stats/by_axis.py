"""The figures of each index of one axis: which channel is the outlier, and which row is dead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.memory.blocks import Block
from tensornp.core.values.reading.supply import Supply
from tensornp.core.values.stats.figures import MAX_CANCELLED, modulus_of, widened
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
        # The squares of shorter floats all fit a float64, with which a processor is quicker.
        is_short = not is_integer and dtype not in ("float64", "complex128")
        total, mean, squares = (np.zeros(size, np.float64 if is_short else np.longdouble) for _ in range(3))
        halves = np.zeros((2, size), np.int64)
        return cls(count, nan, posinf, neginf, zeros, finite, low, high, total, halves, mean, squares)

    def add(self, values: Array, hidden: Array | None, first: int) -> None:
        """Add a block of shape (before, indices, after), whose first index is `first`."""
        if not values.size:
            return
        at = slice(first, first + values.shape[1])
        is_integer = values.dtype.kind in "iu"
        if hidden is None:
            low, high = _over_others(np.minimum, values), _over_others(np.maximum, values)
            # NumPy gives NaN for the extremes of numbers of which one is NaN.
            if is_integer or (np.isfinite(low).all() and np.isfinite(high).all()):
                self._add_finite(values, low, high, at)
                return
        shown = np.ones(values.shape, bool) if hidden is None else ~hidden
        finite = shown if is_integer else shown & np.isfinite(values)
        num = finite.sum(_OTHERS)
        self.count[at] += shown.sum(_OTHERS)
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
        self._add_moments(np.where(finite, values, 0), finite, num, low, high, at)

    def _add_finite(self, values: Array, low: Array, high: Array, at: slice) -> None:
        """Add a block of which all elements are shown and finite, in fewer passes over it."""
        num = np.full(values.shape[1], values.size // values.shape[1])
        self.count[at] += num
        if ((low <= 0) & (high >= 0)).any():
            is_zero = values == 0
            if is_zero.any():
                self.zeros[at] += _over_others(np.add, is_zero, np.int64)
        self._add_moments(values, None, num, low, high, at)

    def _add_moments(self, values: Array, finite: Array | None, num: Array, low: Array, high: Array, at: slice) -> None:
        """Add the ends, the sums, and those of squares, of values that are zero where they are not finite, if any."""
        has = num > 0
        self.finite[at] += num
        np.minimum(self.low[at], low, out=self.low[at], where=has)
        np.maximum(self.high[at], high, out=self.high[at], where=has)
        base: Array | float = 0.0
        if values.dtype.kind in "iu":
            # Both halves of each have a sum of 64 bits.
            wide = values.astype(self.low.dtype, copy=False)
            self.halves[0, at] += (wide >> 32).sum(_OTHERS, dtype=np.int64)
            self.halves[1, at] += (wide & 0xFFFFFFFF).sum(_OTHERS, dtype=np.int64)
            if values.itemsize == 8:
                # Seen from the smallest, where the distance is a float exactly; it has 64 bits without a sign.
                base = np.where(has, self.low[at], 0).astype(values.dtype)
                values = (values - base[:, None]).view(np.uint64)
                values = values if finite is None else np.where(finite, values, 0)
                base = base.astype(np.longdouble)
        # Where a float64 does not hold the squares, a longer float does, if there is one.
        is_extreme = values.dtype == np.float64 and _has_extremes(np.where(has, np.maximum(-low, high), 0))
        flat = values.reshape(-1)
        moved = (flat.astype(np.longdouble) if is_extreme else widened(flat)).reshape(values.shape)
        sums = _over_others(np.add, moved)
        self.total[at] += sums
        mean = sums / np.maximum(num, 1)
        squares = _sums_of_squares(moved)
        spread = squares - sums * mean
        if (spread * MAX_CANCELLED < squares).any():
            moved -= mean[:, None]
            if finite is not None:
                moved[~finite] = 0
            spread = _sums_of_squares(moved)
        # Chan, Golub and LeVeque (1979).
        share = num / np.maximum(self.finite[at], 1)
        delta = np.where(has, mean + base - self.mean[at], 0)
        self.squares[at] += spread + delta * delta * (self.finite[at] - num) * share
        self.mean[at] += delta * share

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


def _over_others(operation: np.ufunc, values: Array, dtype: Any = None) -> Array:
    """Return what an operation makes of the elements of each index: line by line, at which NumPy is quick."""
    lines = values[:, :, 0] if values.shape[2] == 1 else operation.reduce(values, axis=2, dtype=dtype)
    return np.asarray(operation.reduce(lines, axis=0, dtype=dtype))


def _sums_of_squares(values: Array) -> Array:
    """Return the sum of the squares of the elements of each index."""
    if values.shape[2] > 1:
        return np.asarray(np.einsum("abc,abc->b", values, values))
    return np.asarray(np.einsum("ab,ab->b", values[:, :, 0], values[:, :, 0]))


def _has_extremes(size: Array) -> bool:
    """Return whether the squares of some index, whose largest number is of this size, do not fit a float64."""
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

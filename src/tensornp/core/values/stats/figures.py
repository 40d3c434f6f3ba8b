"""Count, extremes, mean and deviation of the numbers of a block; those of blocks add up to those of the whole."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_own = threading.local()
Number = int | float
_ROW = 2**13
"""Numbers that are summed up in one go; of more than 10,000, OpenBLAS makes parts for as many threads as there are."""
MAX_CANCELLED = 1e4
"""How much larger than the variance the mean's square may be, before it is taken off first."""
SMALLEST, LARGEST = 1e-140, 1e140
"""Numbers whose squares a float64 holds well."""
MAX_MODULUS = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of some real numbers; `std` is that of the population, and so is `mean` that of the finite ones.

    `min`, `max`, `mean` and `std` are None where no number is finite. `total` is exact for integers.
    """

    count: int = 0
    nan: int = 0
    posinf: int = 0
    neginf: int = 0
    zeros: int = 0
    min: Number | None = None
    max: Number | None = None
    total: Number = 0
    mean: float | None = None
    std: float | None = None

    @property
    def finite(self) -> int:
        """How many are finite."""
        return self.count - self.nan - self.posinf - self.neginf


def figures_of(values: Array) -> Figures:
    """Return the figures of a contiguous block of booleans, integers, or floats of 32 or 64 bits."""
    flat = values.reshape(-1)
    if flat.dtype.kind == "b":
        flat = flat.view(np.uint8)
    if not flat.size:
        return Figures()
    if flat.dtype.kind in "iu":
        return _of_integers(flat)
    return _of_any_floats(flat)


def scratch(size: int, slot: int = 0, dtype: Any = np.float64) -> Array:
    """Return a buffer of this thread, one for each slot: to get new memory takes longer than to fill it."""
    buffers: dict[int, Array] = _own.__dict__.setdefault("buffers", {})
    nbytes = size * np.dtype(dtype).itemsize
    if len(buffers.get(slot, ())) < nbytes:
        buffers[slot] = np.empty(nbytes, np.uint8)
    return buffers[slot][:nbytes].view(dtype)


def widened(flat: Array, slot: int = 0) -> Array:
    """Return real numbers as float64, in a buffer that the next call for this slot writes over."""
    wide = scratch(flat.size, slot)
    np.copyto(wide, flat, casting="unsafe")
    return wide


def _of_any_floats(flat: Array) -> Figures:
    low, high = flat.min(), flat.max()
    nan = posinf = neginf = 0
    count, finite = flat.size, flat
    # NumPy gives NaN for the extremes of numbers of which one is NaN.
    if not (np.isfinite(low) and np.isfinite(high)):
        nan = int(np.count_nonzero(np.isnan(flat)))
        posinf, neginf = (int(np.count_nonzero(flat == limit)) for limit in (np.inf, -np.inf))
        finite = flat[np.isfinite(flat)]
        if not finite.size:
            return Figures(count, nan, posinf, neginf)
        low, high = finite.min(), finite.max()
    zeros = finite.size - int(np.count_nonzero(finite != 0)) if low <= 0 <= high else 0
    total, mean, std = _moments(widened(finite), float(low), float(high))
    return Figures(count, nan, posinf, neginf, zeros, float(low), float(high), total, mean, std)


def _of_integers(flat: Array) -> Figures:
    low, high = int(flat.min()), int(flat.max())
    zeros = flat.size - int(np.count_nonzero(flat)) if low <= 0 <= high else 0
    if flat.itemsize < 8:
        total, mean, std = _moments(widened(flat), low, high)
        # A sum of so few numbers of 32 bits is exact.
        return Figures(flat.size, 0, 0, 0, zeros, low, high, int(total), mean, std)
    # The two halves of each, whose sums are exact as well.
    exact = int(_sum((flat >> 32).astype(np.float64))) * 2**32 + int(_sum((flat & 0xFFFFFFFF).astype(np.float64)))
    # Seen from the smallest, where the distance is a float exactly.
    base = low if high - low < 2**53 else 0
    moved = (flat - flat.dtype.type(base)).astype(np.float64)
    # Far from zero on both sides, what was moved is rounded; the sum is exact, and so is its mean to the last bit.
    _, _, std = _moments(moved, low - base, high - base)
    return Figures(flat.size, 0, 0, 0, zeros, low, high, exact, exact / flat.size, std)


def _moments(values: Array, low: Number, high: Number) -> tuple[float, float, float]:
    """Return the sum, the mean and the standard deviation of float64 numbers, which are written over."""
    if low == high:
        return float(low) * values.size, float(low), 0.0
    scale, largest = 1.0, max(-float(low), float(high))
    if largest and not SMALLEST < largest < LARGEST:
        # A power of two, so that nothing is rounded.
        scale = math.ldexp(1.0, min(max(-math.frexp(largest)[1], -1000), 1000))
        values *= scale
    count = values.size
    total, squares = _sum(values), sum_of_squares(values)
    mean = total / count
    variance = squares / count - mean * mean
    if variance * MAX_CANCELLED < mean * mean:
        values -= mean
        rest, squares = _sum(values) / count, sum_of_squares(values)
        variance = squares / count - rest * rest
        mean += rest
    return float(np.float64(total) / scale), mean / scale, math.sqrt(max(variance, 0.0)) / scale


def _sum(values: Array) -> float:
    return dot_product(values, _ONES)


def sum_of_squares(values: Array) -> float:
    """Return the sum of squares of float64 numbers, whatever the number of threads."""
    return dot_product(values, values)


def dot_product(values: Array, other: Array) -> float:
    """Return the sum of products of float64 numbers, by rows that one thread adds up; `other` may be one row."""
    num_rows = len(values) // _ROW
    whole, rest = values[: num_rows * _ROW].reshape(num_rows, 1, _ROW), values[num_rows * _ROW :]
    rows = np.matmul(whole, other[: num_rows * _ROW].reshape(-1, _ROW, 1))
    tail = np.dot(rest, other[len(other) - len(rest) :])
    return float(np.add.reduce(rows, axis=None) + tail)


_ONES = np.ones(_ROW)


def modulus_of(real: Array, imag: Array) -> Array:
    """Return the absolute values of complex numbers in float64; NaN where either part is, also beside an infinity.

    One that is larger than any float64 is the largest: only a number with an infinite part is infinite.
    """
    a, b = widened(real, 1), widened(imag, 2)
    if real.dtype != np.float32:
        modulus = np.hypot(a, b)
        modulus[np.isnan(a) | np.isnan(b)] = np.nan
        if np.isinf(modulus).any():
            np.minimum(modulus, MAX_MODULUS, out=modulus, where=np.isfinite(a) & np.isfinite(b))
        return modulus
    # A float64 holds the squares of all float32 numbers.
    np.multiply(a, a, out=a)
    np.multiply(b, b, out=b)
    np.add(a, b, out=a)
    return np.sqrt(a)


def combined(parts: Iterable[Figures]) -> Figures:
    """Return the figures of all parts together; to the last bit the same in whatever order the parts come."""
    known = [part for part in parts if part.count]
    if len(known) < 2:
        return known[0] if known else Figures()
    count, nan, posinf, neginf, zeros = (
        sum(getattr(part, name) for part in known) for name in ("count", "nan", "posinf", "neginf", "zeros")
    )
    told = [part for part in known if part.mean is not None]
    if not told:
        return Figures(count, nan, posinf, neginf, zeros)
    low = min(part.min for part in told if part.min is not None)
    high = max(part.max for part in told if part.max is not None)
    totals = [part.total for part in told]
    mean, std = _pooled([(part.finite, part.mean or 0.0, part.std or 0.0) for part in told])
    is_exact = all(isinstance(part, int) for part in totals)
    finite = sum(part.finite for part in told)
    total = sum(totals) if is_exact else _fsum(totals, mean * finite)
    mean = total / finite if is_exact else mean
    return Figures(count, nan, posinf, neginf, zeros, low, high, total, mean, std)


def _pooled(parts: Sequence[tuple[int, float, float]]) -> tuple[float, float]:
    """Return the mean and the standard deviation of parts of which these are known (Chan, Golub, LeVeque 1979)."""
    count = sum(n for n, _, _ in parts)
    # Halved where a sum of such numbers would be too large for a float.
    shares = [n / count for n, _, _ in parts]
    mean = math.fsum(share * m for share, (_, m, _) in zip(shares, parts, strict=True))
    unit = max(max(s, abs(m - mean)) for _, m, s in parts)
    if not unit or math.isinf(unit):
        return mean, unit
    deviations = (
        share * ((s / unit) ** 2 + ((m - mean) / unit) ** 2) for share, (_, m, s) in zip(shares, parts, strict=True)
    )
    return mean, unit * math.sqrt(math.fsum(deviations))


def _fsum(numbers: Sequence[Number], otherwise: float) -> float:
    """Return the sum; `otherwise` where sums of parts are too large for a float."""
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return otherwise


def times(figures: Figures, factor: int) -> Figures:
    """Return the figures of the same numbers, each meant so many times."""
    counted = ("count", "nan", "posinf", "neginf", "zeros", "total")
    return replace(figures, **{name: getattr(figures, name) * factor for name in counted}) if factor != 1 else figures


def of_zeros(count: int, zero: Number) -> Figures:
    """Return the figures of so many times `zero`."""
    return Figures(count, 0, 0, 0, count, zero, zero, zero, 0.0, 0.0) if count else Figures()

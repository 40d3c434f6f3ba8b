"""Compute the statistics of blocks, and merge them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Number = int | float
MAX_CANCELLED = 1e4
"""Ratio of the squared mean to the variance up to which the mean square gives the variance."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Statistics of real numbers; `min` to `std` are those of the finite ones, or None.

    `total` is exact for integers. `std` is that of the population. Numbers beyond 1e140 have an infinite `std`.
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
        """The number of finite values."""
        return self.count - self.nan - self.posinf - self.neginf


def figures_of(numbers: Array) -> Figures:
    """Return the statistics of flat integers or floats."""
    count, nan, posinf, neginf = numbers.size, 0, 0, 0
    if not count:
        return Figures()
    low, high = numbers.min(), numbers.max()
    # NumPy returns NaN for the extremes if one number is NaN.
    if not (np.isfinite(low) and np.isfinite(high)):
        nan = int(np.count_nonzero(np.isnan(numbers)))
        posinf, neginf = (int(np.count_nonzero(numbers == limit)) for limit in (np.inf, -np.inf))
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return Figures(count, nan, posinf, neginf)
        low, high = numbers.min(), numbers.max()
    # Counting the zeros of a comparison is four times as fast as counting those of floats.
    zeros = int(np.count_nonzero(numbers == 0)) if low <= 0 <= high else 0
    total, mean, std = _moments(numbers)
    # No zero has a sign here.
    return Figures(count, nan, posinf, neginf, zeros, low.item() + 0, high.item() + 0, total, mean, std)


def _moments(numbers: Array) -> tuple[Number, float, float]:
    """Return the sum, the mean and the standard deviation."""
    wide = numbers.astype(np.float64)
    total: Number = float(wide.sum()) if numbers.dtype.kind == "f" else _exact_sum(numbers)
    if numbers[0] == numbers[-1] and (numbers == numbers[0]).all():
        return total, float(wide[0]), 0.0
    # Not a dot product: the threads of BLAS and of torch wait for each other, which takes ten times as long.
    mean, squares = total / numbers.size, np.einsum("i,i", wide, wide)
    variance = squares / numbers.size - mean * mean
    if not variance * MAX_CANCELLED > mean * mean:
        wide -= mean
        variance = np.einsum("i,i", wide, wide) / numbers.size
    return total, mean, math.sqrt(variance)


def _exact_sum(integers: Array) -> int:
    if integers.itemsize < 8:
        return int(integers.sum(dtype=np.int64))
    # The sums of both halves fit 64 bits.
    return int((integers >> 32).sum()) * 2**32 + int((integers & 0xFFFFFFFF).sum())


@np.errstate(all="ignore")
def modulus_of(numbers: Array) -> Array:
    """Return the absolute values of complex numbers as float64.

    The result is NaN if one part is NaN; a finite number whose modulus overflows gets the largest float64.
    """
    wide = numbers.astype(np.complex128, copy=False)
    sizes = np.hypot(wide.real, wide.imag)
    if sizes.size and not np.isfinite(sizes.max()):
        sizes[np.isnan(wide.real) | np.isnan(wide.imag)] = np.nan
        sizes[np.isinf(sizes) & np.isfinite(wide)] = np.finfo(np.float64).max
    return sizes


def combined(parts: Iterable[Figures]) -> Figures:
    """Return the statistics of all parts together, merged one after the other."""
    whole = Figures()
    for part in parts:
        whole = _merged(whole, part)
    return whole


def _merged(a: Figures, b: Figures) -> Figures:
    """Merge means and deviations of two parts (Chan, Golub and LeVeque, 1979)."""
    if not a.count or not b.count:
        return a if a.count else b
    counts = a.count + b.count, a.nan + b.nan, a.posinf + b.posinf, a.neginf + b.neginf, a.zeros + b.zeros
    if a.min is None or b.min is None:
        known = a if b.min is None else b
        return Figures(*counts, known.min, known.max, known.total, known.mean, known.std)
    assert a.max is not None and a.mean is not None and a.std is not None
    assert b.max is not None and b.mean is not None and b.std is not None
    total, finite = a.total + b.total, a.finite + b.finite
    share, difference = b.finite / finite, b.mean - a.mean
    mean = total / finite if isinstance(total, int) else a.mean + difference * share
    # Products, because ** raises where a product overflows to infinity.
    variance = a.std * a.std * (1 - share) + b.std * b.std * share + difference * difference * share * (1 - share)
    return Figures(*counts, min(a.min, b.min), max(a.max, b.max), total, mean, math.sqrt(variance))


def times(figures: Figures, factor: int) -> Figures:
    """Return the statistics of the same numbers, each counted `factor` times."""
    counted = ("count", "nan", "posinf", "neginf", "zeros", "total")
    return replace(figures, **{name: getattr(figures, name) * factor for name in counted}) if factor != 1 else figures


def of_zeros(count: int, zero: Number) -> Figures:
    """Return the statistics of `count` zeros."""
    return Figures(count, 0, 0, 0, count, zero, zero, zero, 0.0, 0.0) if count else Figures()

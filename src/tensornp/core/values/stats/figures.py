"""Compute the statistics of blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.values.stats.record import TensorStats

Array = np.ndarray[Any, Any]
Number = int | float
MAX_CANCELLED = 1e4
"""Ratio of the squared mean to the variance up to which the mean square gives the variance."""


def figures_of(numbers: Array) -> TensorStats:
    """Return the statistics of flat integers or floats."""
    count, nan, posinf, neginf = numbers.size, 0, 0, 0
    if not count:
        return TensorStats(0)
    low, high = numbers.min(), numbers.max()
    # NumPy returns NaN for the extremes if one number is NaN.
    if not (np.isfinite(low) and np.isfinite(high)):
        nan = int(np.count_nonzero(np.isnan(numbers)))
        posinf, neginf = (int(np.count_nonzero(numbers == limit)) for limit in (np.inf, -np.inf))
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return TensorStats(count, nan, posinf, neginf)
        low, high = numbers.min(), numbers.max()
    # Counting the zeros of a comparison is four times as fast as counting those of floats.
    zeros = int(np.count_nonzero(numbers == 0)) if low <= 0 <= high else 0
    total, mean, std = _moments(numbers)
    # No zero has a sign here.
    return TensorStats(count, nan, posinf, neginf, zeros, low.item() + 0, high.item() + 0, total, mean, std)


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


def times(stats: TensorStats, factor: int) -> TensorStats:
    """Return the statistics of the same numbers, each counted `factor` times."""
    if factor == 1:
        return stats
    return replace(
        stats, count=stats.count * factor, nan=stats.nan * factor, posinf=stats.posinf * factor,
        neginf=stats.neginf * factor, zeros=stats.zeros * factor, sum=stats.sum * factor,
        real=stats.real and times(stats.real, factor), imag=stats.imag and times(stats.imag, factor),
    )  # fmt: skip

"""Two blocks as numbers that can be compared: nothing hidden, of one kind, and as vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensornp.core.values.compare.differing import deltas, differing
from tensornp.core.values.stats.norms import Norm, norm_of

Array = np.ndarray[Any, Any]


def as_numbers(a: Array, b: Array) -> tuple[Array, Array]:
    """Return blocks that hide nothing, of numbers: differences of truth values are those of 0 and 1."""
    a, b = (values.view(np.uint8) if values.dtype.kind == "b" else values for values in (a, b))
    is_masked = isinstance(a, np.ma.MaskedArray) or isinstance(b, np.ma.MaskedArray)
    return _shown_alike(a, b) if is_masked else (a, b)


def of_one_kind(a: Array, b: Array) -> tuple[Array, Array]:
    """Return two blocks of one dtype that holds the numbers of both: a long float where one has 64-bit integers."""
    if a.dtype == b.dtype:
        return a, b
    common = np.result_type(a.dtype, b.dtype)
    if any(values.dtype.kind in "iu" and values.itemsize == 8 for values in (a, b)) and common.kind in "fc":
        common = np.dtype(np.clongdouble if common.kind == "c" else np.longdouble)
    return a.astype(common), b.astype(common)


def have_same_bits(a: Array, b: Array) -> bool:
    """Return whether every bit of two blocks is the same."""
    if not a.size:
        return True
    bits = np.dtype(f"u{min(a.itemsize, 8)}")
    return np.array_equal(np.ascontiguousarray(a).view(bits), np.ascontiguousarray(b).view(bits))


def are_all_finite(values: Array) -> bool:
    """Return whether all are, told by their extremes."""
    if values.dtype.kind == "c":
        return bool(np.isfinite(values).all())
    return not values.size or bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def as_vector(values: Array) -> Array:
    """Return numbers as float64; complex ones as their real and imaginary parts."""
    if values.dtype.kind == "c":
        return np.ascontiguousarray(values, np.complex128).view(np.float64)
    return values.astype(np.float64, copy=False)


def norm_of_difference(a: Array, b: Array) -> Norm:
    """Return the norm of the difference; of integers of their exact one."""
    if a.dtype.kind in "iu" and a.dtype == b.dtype:
        return norm_of(as_vector(deltas(a, b)[0]))
    wide = np.result_type(a.dtype, np.float64)
    with np.errstate(all="ignore"):
        difference = as_vector(b.astype(wide) - a)
        if np.isfinite(difference).all():
            return norm_of(difference)
        # Quarters, since it is larger than any float.
        return norm_of(as_vector(b.astype(wide) / 4 - a / 4), exponent=2)


def sizes_of_change(a: Array, b: Array) -> Array:
    """Return |b − a| of two flat blocks of equal length, as float64: 0 where they are equal, as NaN and NaN are.

    It is NaN or infinite where one side is not finite, and infinite where no float holds it.
    """
    a, b = of_one_kind(*as_numbers(a, b))
    if a.dtype.kind in "iu":
        return np.asarray(deltas(a, b)[0], np.float64)
    wide = np.result_type(a.dtype, np.float64)
    with np.errstate(all="ignore"):
        change = b.astype(wide)
        change -= a
        sizes = np.abs(change, out=None if wide.kind == "c" else change)
        # Of finite numbers, those are equal whose difference is 0.
        is_told = np.isfinite(sizes.max(initial=0))
        return np.asarray(sizes if is_told else np.where(differing(a, b), sizes, 0.0), np.float64)


def plain_number(value: Any) -> Any:
    """Return a number of NumPy's as one of Python's; a long double, in which 64-bit integers are compared, too."""
    number = value.item()
    if isinstance(number, np.longdouble):
        return int(number) if np.isfinite(number) and number == np.rint(number) else float(number)
    if isinstance(number, np.clongdouble):
        return complex(number)
    return number


def _shown_alike(a: Array, b: Array) -> tuple[Array, Array]:
    """Return blocks in which what is hidden equals what is hidden on the other side, and nothing else."""
    hidden_a, hidden_b = (np.ma.getmaskarray(values) for values in (a, b))
    both, one = hidden_a & hidden_b, hidden_a ^ hidden_b
    data_a, data_b = (np.array(np.ma.getdata(values)) for values in (a, b))
    data_a[both] = data_b[both] = 0
    if one.any():
        data_a, data_b = (values.astype(np.result_type(values.dtype, np.float64)) for values in (data_a, data_b))
        for data, other, hidden in ((data_a, data_b, hidden_a & one), (data_b, data_a, hidden_b & one)):
            data[hidden] = np.where(np.isnan(other[hidden]), 0, np.nan)
    return data_a, data_b

"""Extremes, sum and sum of squares in two passes of numkong, where that is installed (the extra ``fast``)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


@functools.cache
def _library() -> Any:
    """Return numkong if it computes what it promises here, else None."""
    try:
        import numkong  # type: ignore[import-not-found,unused-ignore]  # an extra
    except ImportError:
        return None
    try:
        tried = np.arange(1, 10_001, dtype=np.float32) / 8
        total, squares = numkong.moments(tried)
        low, _, high, _ = numkong.minmax(tried)
        # Both sums are exact in float64, and in no shorter float.
        is_exact = (total, squares) == (10_000 * 10_001 / 16, 10_000 * 10_001 * 20_001 / 384)
        return numkong if is_exact and (low, high) == (0.125, 1250.0) else None
    except Exception:
        # Another version, which does otherwise.
        return None


def is_there() -> bool:
    """Return whether numkong is used."""
    return _library() is not None


def extremes_and_moments(flat: np.ndarray[Any, Any]) -> tuple[float, float, float, float] | None:
    """Return the smallest and the largest number, the sum and the sum of squares of contiguous float32 numbers.

    None without numkong, for another dtype, and where one of the numbers is not finite.
    """
    library = _library() if flat.dtype == np.float32 and flat.size else None
    if library is None:
        return None
    total, squares = library.moments(flat)
    if not np.isfinite(squares) or not np.isfinite(total):
        return None
    low, _, high, _ = library.minmax(flat)
    return float(low), float(high), float(total), float(squares)

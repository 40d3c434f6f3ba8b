"""Norms of numbers of which squares and sums may be larger or smaller than any float, and the angle between vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.values.stats.figures import dot_product, sum_of_squares

Array = np.ndarray[Any, Any]
_LEAST_SQUARES = 1e-280
"""A smaller sum of squares may lack some that are too small for a float."""
_MAX_RATIO = 1e3
"""Of the norms of two vectors: past it, that of their difference says too little of the angle."""


class Norm(NamedTuple):
    """A norm: `share` times 2 to the power of `exponent`."""

    share: float
    exponent: int = 0


class Sides(NamedTuple):
    """The norms of two vectors and of their difference, and the cosine of the angle between them."""

    first: Norm
    second: Norm
    difference: Norm
    cosine: float


def scaled(numbers: Array) -> tuple[int, Array]:
    """Return an exponent, and the numbers divided by that power of two: none is larger than a half.

    So no difference is too large for a float, and none of small ones is rounded.
    """
    exponent = 1 + math.frexp(float(np.abs(numbers).max()))[1]
    return exponent, np.ldexp(numbers, -exponent)


def norm_of(values: Array, squares: float | None = None, exponent: int = 0) -> Norm:
    """Return the norm of finite float64 numbers that were divided by 2 to the power of `exponent`.

    `squares` is the sum of their squares, where that is known.
    """
    if squares is None:
        with np.errstate(all="ignore"):
            squares = sum_of_squares(values)
    if _LEAST_SQUARES < squares < math.inf:
        return Norm(math.sqrt(squares), exponent)
    if not values.any():
        return Norm(0.0)
    more, values = scaled(values)
    return Norm(math.sqrt(sum_of_squares(values)), exponent + more)


def sides_of(a: Array, b: Array, first: Norm, second: Norm, difference: Norm) -> Sides:
    """Return the norms of two vectors of finite float64 numbers and of their difference, with the angle."""
    known = sides_by_norms(first, second, difference)
    if known is not None:
        return known
    units = (np.ldexp(values, -norm.exponent) / norm.share for values, norm in ((a, first), (b, second)))
    return Sides(first, second, difference, dot_product(*units))


def sides_by_norms(first: Norm, second: Norm, difference: Norm) -> Sides | None:
    """Return the same from norms alone; None where these say too little of the angle."""
    if not first.share or not second.share:
        return Sides(first, second, difference, 0.0)
    distance = _distance(first, second, difference)
    return Sides(first, second, difference, 1 - distance) if distance is not None else None


def _distance(first: Norm, second: Norm, difference: Norm) -> float | None:
    """Return 1 − cos of the angle, from norms alone; None where they say too little."""
    small, large = (first, second) if ratio(first, second) < 1 else (second, first)
    share = ratio(small, large)
    if share * _MAX_RATIO < 1:
        return None
    size = ratio(difference, large)
    # (‖Δ‖² − (‖A‖ − ‖B‖)²) / (2 ‖A‖ ‖B‖)
    return min(max(size - (1 - share), 0.0) * (size + (1 - share)) / (2 * share), 2.0)


def cosine_distance(parts: Sequence[Sides]) -> float:
    """Return 1 − cos of the angle between two vectors, of which these are the parts; from 0 on, and at most 2."""
    first, second, difference = (_together(norms) for norms in list(zip(*parts, strict=True))[:3])
    if not first.share or not second.share:
        return 0.0 if first.share == second.share else 1.0
    distance = _distance(first, second, difference)
    if distance is not None:
        return distance
    cosines = (part.cosine * ratio(part.first, first) * ratio(part.second, second) for part in parts)
    return min(max(1 - math.fsum(cosines), 0.0), 2.0)


def size_of(norms: Sequence[Norm]) -> float:
    """Return the norm of a vector of which these are those of the parts: infinity where no float can hold it."""
    whole = _together(norms)
    try:
        return math.ldexp(whole.share, whole.exponent)
    except OverflowError:
        return math.inf


def relative_size(parts: Sequence[Sides]) -> float:
    """Return the norm of the difference over that of the first."""
    first, _, difference = (_together(norms) for norms in list(zip(*parts, strict=True))[:3])
    if not first.share:
        return math.inf if difference.share else 0.0
    return ratio(difference, first)


def _together(norms: Sequence[Norm]) -> Norm:
    """Return the norm of a vector of which these are those of the parts."""
    known = [norm for norm in norms if norm.share]
    exponent = max((norm.exponent for norm in known), default=0)
    return Norm(math.hypot(*(math.ldexp(norm.share, norm.exponent - exponent) for norm in known)), exponent)


def ratio(norm: Norm, other: Norm) -> float:
    """Return a norm over another one, which is not 0; infinity where that is larger than any float."""
    try:
        return math.ldexp(norm.share / other.share, norm.exponent - other.exponent)
    except OverflowError:
        return math.inf

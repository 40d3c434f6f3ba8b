"""Choose the two values between which the colours of a heat map run; outliers do not count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.values.pictures.heatmap import FINITE, Heatmap
from tensornp.errors import BadRequestError

ROBUST = 0.01
"""The part of the pixels at each end that may lie beyond."""
_FAR = 2.0
"""How many times the robust range must fit into the whole one before anything is left beyond it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The values at the two ends of the colours.

    Attributes
    ----------
    low, high : float
        Equal where all values are; NaN where there is no finite one.
    centre : float or None
        The value of the middle colour where the data is signed, else None.
    num_below, num_above : int
        Pixels that are finite and lie beyond.
    """

    low: float
    high: float
    centre: float | None = None
    num_below: int = 0
    num_above: int = 0

    @property
    def num_beyond(self) -> int:
        """How many pixels are finite and lie beyond."""
        return self.num_below + self.num_above

    @np.errstate(all="ignore")
    def shares(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the places of values between the limits, from 0 to 1; 0.5 if the limits are equal."""
        if not self.low < self.high:
            return np.full(np.shape(values), 0.5)
        # Halves where the difference is larger than any float; those of the smallest are none.
        unit = 1.0 if math.isfinite(self.high - self.low) else 0.5
        return np.asarray((values * unit - self.low * unit) / (self.high * unit - self.low * unit))


@np.errstate(all="ignore")
def limits(heatmap: Heatmap, low: float | None = None, high: float | None = None) -> Limits:
    """Return the limits for the colours of `heatmap`: symmetric about its centre where it is signed.

    Parameters
    ----------
    heatmap : Heatmap
    low, high : float, optional
        The least and the greatest value that is to have a colour of its own, as quantiles of the elements where a pixel
        shows one element; the one farther out holds for both sides of what is signed. None finds them among the pixels:
        a pixel that shows the farthest of many elements lies beyond most quantiles of these. They then are the least
        and the greatest pixel, or, where that is more than twice the range of all pixels but 1% at each end, that one.

    Raises
    ------
    BadRequestError
        If a limit is not finite, or `low` is greater than `high`.
    """
    pixels = heatmap.values[heatmap.flags == FINITE]
    centre = heatmap.centre if heatmap.is_signed else None
    given = [limit for limit in (low, high) if limit is not None]
    if not all(map(math.isfinite, given)) or (len(given) == 2 and given[0] > given[1]):
        raise BadRequestError(f"{low} … {high} is no range for colours; pass two finite numbers, the lower one first")
    if not pixels.size:
        return Limits(math.nan, math.nan, centre)
    if centre is None:
        found = _range(pixels, _FAR)
        low, high = (found[0] if low is None else float(low)), (found[1] if high is None else float(high))
        low, high = min(low, high), max(low, high)
    else:
        reach = max((abs(limit - centre) for limit in given), default=_range(np.abs(pixels - centre), _FAR)[1])
        low, high = centre - reach, centre + reach
    return Limits(low, high, centre, int((pixels < low).sum()), int((pixels > high).sum()))


def _range(pixels: np.ndarray[tuple[int], np.dtype[np.float64]], far: float) -> tuple[float, float]:
    """Return the least and the greatest, or the robust ones where these are far out."""
    least, greatest = float(pixels.min()), float(pixels.max())
    low, high = (float(q) for q in np.quantile(pixels, (ROBUST, 1 - ROBUST)))
    if high > low and greatest / far - least / far > high - low:
        return low, high
    return least, greatest

"""Choose the two values between which the colours of a heat map run; outliers do not count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.values.pictures.heatmap import FINITE, Heatmap

ROBUST = 0.01
"""The part of the pixels at each end that may lie beyond."""
_FAR = 2.0
"""How many times the robust range must fit into the whole one before anything is left beyond it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The values at the two ends of the colours; equal if all values are, NaN if none is finite.

    `centre` is the value of the middle colour of signed data. `num_below` and `num_above` finite pixels lie beyond.
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
def limits(heatmap: Heatmap) -> Limits:
    """Return the limits for the colours of `heatmap`, symmetric about 0 if it is signed.

    They are the least and the greatest pixel, or if these are more than twice as far apart as all pixels except 1 % at
    each end, the ends of these.
    """
    pixels = heatmap.values[heatmap.flags == FINITE]
    centre = 0.0 if heatmap.is_signed else None
    if not pixels.size:
        return Limits(math.nan, math.nan, centre)
    low, high = _range(np.abs(pixels) if heatmap.is_signed else pixels)
    low = -high if heatmap.is_signed else low
    return Limits(low, high, centre, int((pixels < low).sum()), int((pixels > high).sum()))


def _range(pixels: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """Return the least and the greatest, or the robust ones where these are far out."""
    least, greatest = float(pixels.min()), float(pixels.max())
    low, high = (float(q) for q in np.quantile(pixels, (ROBUST, 1 - ROBUST)))
    is_far = high > low and greatest / _FAR - least / _FAR > high - low
    return (low, high) if is_far else (least, greatest)

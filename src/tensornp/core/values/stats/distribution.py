"""Count how numbers are distributed, for quantiles and histograms.

Few numbers are kept. Of many, those with one bfloat16 code (the leading 16 bits of the float32) count together: codes
need no range beforehand, and their counts add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.tensor.strides import PIECE_NUMEL, pieces_of

Array = np.ndarray[Any, Any]
MAX_KEPT = 2**14
"""Numbers that are kept, so that quantiles are exact."""
NUM_CODES = 2**16
_LOW_BITS = np.uint32(2**16 - 1)
_LARGEST = np.finfo(np.float32).max
NUM_BINS = 64
_DECIMALS = 9
"""Decimals of the width of a cell to which its border is rounded, so that nothing leaks into an empty cell."""


@dataclass(frozen=True)
class Histogram:
    """Counts between edges.

    Attributes
    ----------
    counts : numpy.ndarray
        int64, one less than the edges; they add up to the finite elements that were counted.
    edges : numpy.ndarray
        float64, rising; a bin has its lower edge, but not its upper one; the last bin has both.
    scope : str
        The elements that were counted: "all elements", or "sampled 1/17".
    """

    counts: Array
    edges: Array
    scope: str

    def cells(self, num_cells: int) -> Array:
        """Return the mean number of elements in equal intervals between the outer edges."""
        low, high = float(self.edges[0]), float(self.edges[-1])
        if low == high:
            return np.full(num_cells, self.counts.sum() / num_cells)
        # Halves, if the range is larger than any float.
        unit = 1.0 if math.isfinite(high - low) else 0.5
        shares = np.round((self.edges * unit - low * unit) / (high * unit - low * unit) * num_cells, _DECIMALS)
        total = np.concatenate(([0.0], self.counts.cumsum()))
        below = np.interp(np.arange(num_cells + 1), shares, total)
        # If edges meet, everything between them is on the inner side.
        below[0], below[-1] = total[0], total[-1]
        return np.diff(below)


@dataclass(frozen=True, eq=False)
class Distribution:
    """Finite numbers in ascending order and their counts; if not exact, each stands for its bfloat16 code."""

    numbers: Array
    counts: Array
    is_exact: bool = True
    one_in: int = 1

    @property
    def num_seen(self) -> int:
        return int(self.counts.sum())

    @property
    def scope(self) -> str:
        return f"sampled 1/{self.one_in:,}" if self.one_in > 1 else "all elements"

    @property
    def accuracy(self) -> str:
        """How exact quantiles are: ``exact``, ``values ± 0.4 %``, ``sampled 1/17, values ± 0.4 %``."""
        said = [self.scope] if self.one_in > 1 else []
        said += [] if self.is_exact else ["values ± 0.4 %"]
        return ", ".join(said) or "exact"

    def _ends(self) -> tuple[Array, Array]:
        if self.is_exact:
            return self.numbers, self.numbers
        far = (self.numbers.astype(np.float32).view(np.uint32) | _LOW_BITS).view(np.float32).astype(np.float64)
        is_negative = np.signbit(self.numbers)
        return np.where(is_negative, far, self.numbers), np.where(is_negative, self.numbers, far)

    @never_compiled
    @np.errstate(all="ignore")
    def quantile(self, q: float, low: float, high: float, *, is_integer: bool = False) -> float:
        """Return the quantile `q`, interpolated linearly between ranks as NumPy does."""
        lows, highs = self._ends()
        if is_integer:
            lows, highs = np.ceil(lows), np.floor(highs)
        middles = np.clip(lows + (highs - lows) / 2, low, high)
        ends = np.cumsum(self.counts)
        rank = q * (int(ends[-1]) - 1)
        below, above = (middles[np.searchsorted(ends, r, side="right")] for r in (math.floor(rank), math.ceil(rank)))
        part = rank - math.floor(rank)
        return float(below) if below == above else float(below * (1 - part) + above * part)

    @never_compiled
    @np.errstate(all="ignore")
    def histogram(self, low: float, high: float, num_bins: int = NUM_BINS) -> Histogram:
        """Return the counts between `low` and `high` in at most `num_bins` bins; no edge divides a code."""
        lows, highs = self._ends()
        if low == high or not len(lows):
            return Histogram(np.array([self.num_seen]), np.array([low, high]), self.scope)
        # The difference of the ends may be larger than any float.
        shares = np.arange(1, num_bins) / num_bins
        # Rounding may put close edges out of order.
        inner = np.maximum.accumulate(low * shares[::-1] + high * shares)
        if not self.is_exact:
            at = np.maximum(lows.searchsorted(inner, side="right") - 1, 0)
            inner = np.where((lows[at] < inner) & (inner <= highs[at]), lows[at], inner)
        # Edges that meet are one.
        inner = inner[(inner > np.concatenate(([low], inner[:-1]))) & (inner < high)]
        ends = [0, *lows.searchsorted(inner), len(lows)]
        total = np.concatenate(([0], self.counts.cumsum()))
        return Histogram(np.diff(total[ends]), np.concatenate(([low], inner, [high])), self.scope)


def of_codes(counts: Array, *, is_exact: bool, one_in: int = 1) -> Distribution:
    # Codes from 2**15 on are those of negative numbers, in descending order. Bools are searched five times as fast.
    half, is_used = NUM_CODES // 2, counts != 0
    used = np.concatenate([half + np.flatnonzero(is_used[half:])[::-1], np.flatnonzero(is_used[:half])])
    numbers = (used.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return Distribution(numbers, counts[used], is_exact, one_in)


def distribution_of(numbers: Array, counts: Array, *, is_exact: bool = True, one_in: int = 1) -> Distribution:
    if is_exact and counts.sum() <= MAX_KEPT:
        # Both zeros become the positive one.
        numbers, at = np.unique(numbers + 0.0, return_inverse=True)
        return Distribution(numbers, np.bincount(at, counts, len(numbers)).astype(np.int64), one_in=one_in)
    totals = np.zeros(NUM_CODES, np.int64)
    bits, are_codes = bits_of(numbers)
    np.add.at(totals, bits >> 16, counts)
    return of_codes(totals, is_exact=is_exact and are_codes, one_in=one_in)


def bits_of(numbers: Array, may_be_exact: bool = True) -> tuple[Array, bool]:
    """Return the bits of finite numbers as float32, and whether their codes tell them exactly."""
    # Integers go through float64, as those that are kept do.
    wide = numbers if numbers.dtype == np.float32 else numbers.astype(np.float64, copy=False)
    single = wide.astype(np.float32, copy=False)
    if single is not wide:
        single = single.clip(-_LARGEST, _LARGEST)
    bits = single.view(np.uint32)
    is_exact = may_be_exact and not np.bitwise_or.reduce(bits) & _LOW_BITS
    return bits, is_exact and (single is wide or bool((single == wide).all()))


def add_codes(counts: Array, numbers: Array) -> bool:
    """Count finite numbers by their codes; return whether these tell them exactly."""
    is_exact = True
    # The system maps large temporary arrays anew each time.
    buffer = np.empty(min(numbers.size, PIECE_NUMEL), np.intp)
    for some in pieces_of(numbers):
        bits, is_exact = bits_of(some, is_exact)
        # NumPy casts uint32 to its own index type six times as slowly.
        codes = np.right_shift(bits, 16, out=buffer[: some.size])
        counts += np.bincount(codes, minlength=NUM_CODES)
    return is_exact


def added_up(parts: Sequence[Distribution]) -> Distribution:
    rates = {part.one_in for part in parts if part.num_seen} or {1}
    if len(rates) > 1:
        parts = [replace(part, counts=part.counts * part.one_in) for part in parts]
    numbers, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", "counts"))
    return distribution_of(numbers, counts, is_exact=all(part.is_exact for part in parts), one_in=max(rates))

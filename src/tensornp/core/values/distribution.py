"""How numbers are distributed: counts of keys, from which quantiles and histograms are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tensornp.core.lowlevel.modes import never_compiled
from tensornp.core.values.histogram import NUM_BINS, Histogram
from tensornp.core.values.keys import Scheme, truncated
from tensornp.core.values.norms import scaled
from tensornp.errors import BadRequestError

Array = np.ndarray[Any, Any]
_MIN_COUNTED = 2**18


@dataclass(frozen=True, eq=False)
class Distribution:
    """How many finite numbers have each key; the keys rise.

    Of a sample, each count stands for `one_in` as many; `rank_error` is 0 where all were counted.
    """

    scheme: Scheme
    keys: Array
    counts: Array
    is_sample: bool = False
    one_in: float = 1.0
    num_sampled: int = 0
    rank_error: float = 0.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.scheme, self.keys.tobytes(), self.counts.tobytes(), self.is_sample, self.one_in, self.num_sampled

    @property
    def num_seen(self) -> int:
        """The sum of the counts."""
        return int(self.counts.sum())

    def in_order(self) -> tuple[Array, Array, Array]:
        """Return the smallest and the largest number of each key, rising, and their counts."""
        low, high = self.scheme.ranges(self.keys)
        # The zero of either sign comes between the negative numbers and the positive ones.
        order = np.lexsort((~np.signbit(low), low))
        return low[order], high[order], self.counts[order]

    @never_compiled
    def quantile(self, q: float, low: float, high: float, *, is_integer: bool = False) -> float:
        """Return the number below which a share `q` of all lies, by linear interpolation of ranks as NumPy's.

        Of integers, each is taken for an integer of its key.
        """
        lows, highs, counts = self.in_order()
        rank = q * (int(counts.sum()) - 1)
        ends = np.cumsum(counts)
        below, above = (int(np.searchsorted(ends, r, side="right")) for r in (math.floor(rank), math.ceil(rank)))

        def number(i: int) -> float:
            first, last = (np.ceil(lows[i]), np.floor(highs[i])) if is_integer else (lows[i], highs[i])
            # Both have one sign.
            middle = first + (last - first) / 2
            return float(min(max(middle, low), high))

        part = Fraction(rank - math.floor(rank))
        # Neither too large in between, nor rounded twice where floats are few.
        return float(Fraction(number(below)) * (1 - part) + Fraction(number(above)) * part)

    @never_compiled
    def histogram(self, low: float, high: float, num_bins: int = NUM_BINS) -> Histogram:
        """Return the counts between `low` and `high` in at most `num_bins` bins, no edge of which parts a key."""
        lows, highs, counts = self.in_order()
        if low == high or not len(lows):
            return Histogram(np.array([counts.sum()]), np.array([low, high]), self.scope, self.rank_error)
        exponent, (first, last) = scaled(np.array([low, high]))
        shares = first / num_bins * np.arange(num_bins - 1, 0, -1) + last / num_bins * np.arange(1, num_bins)
        wanted = np.ldexp(shares, exponent)
        key = np.maximum(np.searchsorted(lows, wanted, side="right") - 1, 0)
        is_inside = (lows[key] < wanted) & (wanted <= highs[key])
        inner = np.unique(np.where(is_inside, lows[key], wanted))
        edges = np.concatenate(([low], inner[(inner > low) & (inner < high)], [high]))
        ends = np.concatenate(([0], np.searchsorted(lows, edges[1:-1], side="left"), [len(lows)]))
        total = np.concatenate(([0], np.cumsum(counts)))
        return Histogram(np.diff(total[ends]), edges, self.scope, self.rank_error)

    @property
    def scope(self) -> str:
        """What was counted, in words."""
        return f"sample of {self.num_sampled:,}" if self.is_sample else "all elements"


def added_up(parts: Sequence[Distribution]) -> Distribution:
    """Return the distribution of all parts together; BadRequestError where their keys are of two kinds."""
    if len({part.scheme for part in parts}) > 1:
        raise BadRequestError("statistics of two dtypes do not add up; convert one of the tensors first")
    scheme = parts[0].scheme
    dense = np.zeros(scheme.num_keys, np.int64)
    rates = {part.one_in for part in parts if part.num_seen}
    for part in parts:
        counts = part.counts if len(rates) < 2 else np.rint(part.counts * part.one_in).astype(np.int64)
        # No key comes twice in one part.
        dense[part.keys - scheme.least] += counts
    sampled = sum(part.num_sampled for part in parts)
    if not any(part.is_sample for part in parts):
        return _distribution(scheme, dense)
    if len(rates) < 2:
        return _distribution(scheme, dense, sampled, rates.pop() if rates else 1.0, rank_error_of(sampled))
    # Each error counts as much as the elements for which its sample stands.
    meant = [part.num_seen * part.one_in for part in parts]
    error = sum(n * part.rank_error for n, part in zip(meant, parts, strict=True)) / max(sum(meant), 1)
    return _distribution(scheme, dense, sampled, 1.0, error)


def rank_error_of(num_sampled: int) -> float:
    """Return the bound of Dvoretzky, Kiefer and Wolfowitz at 5% (Massart 1990)."""
    return math.sqrt(math.log(2 / 0.05) / (2 * max(num_sampled, 1)))


def _distribution(
    scheme: Scheme, counts: Array, num_sampled: int = 0, one_in: float = 1.0, rank_error: float = 0.0
) -> Distribution:
    """Return the distribution of which all keys are counted; of a sample, unless `num_sampled` is 0."""
    found = np.flatnonzero(counts)
    keys = (found + scheme.least).astype(np.int32)
    return Distribution(scheme, keys, counts[found], bool(num_sampled), one_in, num_sampled, rank_error)


class Counter:
    """Counts the keys of blocks, some of them at a time."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._counts = np.zeros(scheme.num_keys, np.int64)
        # To count a few in as many bins takes longer than to count many.
        self._waiting = np.empty(max(scheme.num_keys, _MIN_COUNTED), scheme.stored)
        self._num_waiting = 0

    def add(self, values: Array) -> None:
        """Count the numbers of `values`, one-dimensional."""
        if self._scheme.stored == np.float64 and values.dtype.kind in "iu":
            values = truncated(values)
        while values.size:
            left = self._waiting[self._num_waiting :][: values.size]
            np.copyto(left, values[: left.size], casting="unsafe")
            self._num_waiting += left.size
            values = values[left.size :]
            if self._num_waiting == len(self._waiting):
                self._count()

    def _count(self) -> None:
        if self._num_waiting:
            self._counts += self._scheme.counts(self._waiting[: self._num_waiting])
            self._num_waiting = 0

    def finish(self, *, factor: int = 1, one_in: float = 0.0) -> Distribution:
        """Return the distribution of the finite ones that were counted, each meant `factor` times.

        `one_in` is how many elements each of a sample stands for; 0 where all were counted.
        """
        self._count()
        counts = self._counts
        if not one_in:
            return _distribution(self._scheme, counts * factor)
        num_sampled = int(counts.sum())
        # Of a part without a sample there is none.
        return _distribution(self._scheme, counts, num_sampled, one_in * factor, rank_error_of(num_sampled))

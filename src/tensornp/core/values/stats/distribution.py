"""How numbers are distributed: counts of keys, from which quantiles and histograms are made.

Few numbers are their own keys, so that nothing of them is lost; many have keys of fewer bits. How many there are of all
decides, so that it does not matter how they were cut into parts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.values.stats.fast import Kernels
from tensornp.core.values.stats.histogram import NUM_BINS, Histogram
from tensornp.core.values.stats.keys import Scheme, truncated
from tensornp.core.values.stats.norms import scaled
from tensornp.core.values.stats.sums import FigureSums
from tensornp.errors import BadRequestError

Array = np.ndarray[Any, Any]
MAX_KEPT = 2**14
"""Numbers that are kept as they are."""
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
    @np.errstate(all="ignore")
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
    @np.errstate(all="ignore")
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
        # Where it is asked for no index, NumPy imports what it has for masked arrays: a tenth of the first card.
        inner, _ = np.unique(np.where(is_inside, lows[key], wanted), return_index=True)
        edges = np.concatenate(([low], inner[(inner > low) & (inner < high)], [high]))
        ends = np.concatenate(([0], np.searchsorted(lows, edges[1:-1], side="left"), [len(lows)]))
        total = np.concatenate(([0], np.cumsum(counts)))
        return Histogram(np.diff(total[ends]), edges, self.scope, self.rank_error)

    @property
    def scope(self) -> str:
        """What was counted, in words."""
        return f"sample of {self.num_sampled:,}" if self.is_sample else "all elements"

    @property
    def accuracy(self) -> str:
        """How exact quantiles are, in words: ``exact``, ``values ± 0.5%``, ``sample of 1,048,576: ranks ± 0.13%``."""
        values = [] if self.scheme.is_exact else ["values ± 0.5%"]
        if not self.is_sample:
            return values[0] if values else "exact"
        return ", ".join([f"{self.scope}: ranks ± {100 * self.rank_error:.2g}%", *values])


def added_up(parts: Sequence[Distribution]) -> Distribution:
    """Return the distribution of all parts together; BadRequestError where their keys are of two kinds."""
    if len(parts) == 1:
        return parts[0]
    if len({part.scheme.coarse for part in parts}) > 1:
        raise BadRequestError("statistics of two dtypes do not add up; convert one of the tensors first")
    rates = {part.one_in for part in parts if part.num_seen}
    is_few = sum(part.num_seen for part in parts) <= MAX_KEPT and all(part.scheme.is_exact for part in parts)
    together = _kept_together(parts) if is_few and len(rates) < 2 else _counted_together(parts, rates)
    sampled = sum(part.num_sampled for part in parts)
    if not any(part.is_sample for part in parts):
        return together
    sample = replace(together, is_sample=True, num_sampled=sampled)
    if len(rates) < 2:
        return replace(sample, one_in=rates.pop() if rates else 1.0, rank_error=rank_error_of(sampled))
    # Each error counts as much as the elements for which its sample stands.
    meant = [part.num_seen * part.one_in for part in parts]
    error = sum(n * part.rank_error for n, part in zip(meant, parts, strict=True)) / max(sum(meant), 1)
    return replace(sample, rank_error=error)


def _kept_together(parts: Sequence[Distribution]) -> Distribution:
    """Return the distribution of few numbers, each of which is a key."""
    return Distribution(parts[0].scheme, *_summed(parts))


def _counted_together(parts: Sequence[Distribution], rates: Collection[float]) -> Distribution:
    """Return the distribution of many numbers; of parts of several rates, each count stands for what it means."""
    coarse = [_coarsened(part) for part in parts]
    if len(rates) > 1:
        coarse = [replace(part, counts=np.rint(part.counts * part.one_in).astype(np.int64)) for part in coarse]
    scheme = coarse[0].scheme
    if scheme.is_sparse(sum(len(part.keys) for part in coarse)):
        return Distribution(scheme, *_summed(coarse))
    dense = np.zeros(scheme.num_keys, np.int64)
    for part in coarse:
        # No key comes twice in one part.
        dense[part.keys - scheme.least] += part.counts
    return Distribution(scheme, *scheme.counted(dense))


def _summed(parts: Sequence[Distribution]) -> tuple[Array, Array]:
    """Return the keys of all parts, as they rise, and how many have each."""
    keys, at = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, at, np.concatenate([part.counts for part in parts]))
    return keys, counts


def _coarsened(part: Distribution) -> Distribution:
    """Return the same numbers with keys that can be counted."""
    scheme = part.scheme.coarse
    if part.scheme == scheme:
        return part
    numbers = np.repeat(part.keys.view(scheme.stored), part.counts)
    return Distribution(scheme, *scheme.tally(numbers), one_in=part.one_in)


def rank_error_of(num_sampled: int) -> float:
    """Return the bound of Dvoretzky, Kiefer and Wolfowitz at 5% (Massart 1990)."""
    return math.sqrt(math.log(2 / 0.05) / (2 * max(num_sampled, 1)))


class Counter:
    """Counts the keys of blocks, some of them at a time; a few numbers are kept instead."""

    def __init__(self, scheme: Scheme, kernels: Kernels | None = None) -> None:
        self._scheme, self._stored = scheme, scheme.stored
        self._count_keys = kernels.count if kernels is not None else None
        self._counts: Array | None = None
        # To count a few in as many bins takes longer than to count many.
        self._waiting = np.empty(max(scheme.num_keys, _MIN_COUNTED), self._stored)
        self._num_waiting = 0

    def add(self, values: Array, figures: FigureSums | None = None) -> None:
        """Count the numbers of `values`, one-dimensional; `figures` takes them on the way."""
        if figures is not None and values.dtype != self._stored:
            figures.add(values)
            figures = None
        if self._stored == np.float64 and values.dtype.kind in "iu":
            values = truncated(values)
        if self._count_keys is not None and values.dtype == self._stored:
            if self._counts is None and np.count_nonzero(np.isfinite(values[: 2 * MAX_KEPT])) > MAX_KEPT:
                self._counts = np.zeros(self._scheme.num_keys, np.int64)
            if self._counts is not None:
                self._scheme.count_into(values, self._counts, figures.add if figures is not None else self._count_keys)
                return
        if figures is not None:
            figures.add(values)
        while values.size:
            left = self._waiting[self._num_waiting :][: values.size]
            np.copyto(left, values[: left.size], casting="unsafe")
            self._num_waiting += left.size
            values = values[left.size :]
            if self._num_waiting == len(self._waiting):
                self._count()

    def _count(self) -> None:
        """Count what waits; where that is all there is, and few, it waits on, without what is not finite."""
        numbers = self._waiting[: self._num_waiting]
        if self._counts is None:
            numbers = numbers[np.isfinite(numbers)]
            self._num_waiting = len(numbers)
            if len(numbers) <= MAX_KEPT:
                self._waiting[: len(numbers)] = numbers
                return
            self._counts = np.zeros(self._scheme.num_keys, np.int64)
        self._scheme.count_into(numbers, self._counts, self._count_keys)
        self._num_waiting = 0

    def finish(self, *, factor: int = 1, one_in: float = 0.0) -> Distribution:
        """Return the distribution of the finite ones that were counted, each meant `factor` times.

        `one_in` is how many elements each of a sample stands for; 0 where all were counted.
        """
        found = self._found(1 if one_in else factor)
        if not one_in:
            return replace(found, counts=found.counts * factor) if factor != 1 else found
        # Of a part without a sample there is none.
        num, error = found.num_seen, rank_error_of(found.num_seen)
        return replace(found, is_sample=bool(num), one_in=one_in * factor, num_sampled=num, rank_error=error)

    def _found(self, factor: int) -> Distribution:
        if self._counts is not None:
            if self._num_waiting:
                self._count()
            return Distribution(self._scheme, *self._scheme.counted(self._counts))
        numbers = self._waiting[: self._num_waiting]
        numbers = numbers[np.isfinite(numbers)]
        scheme = self._scheme.fine if len(numbers) * factor <= MAX_KEPT else self._scheme
        return Distribution(scheme, *scheme.tally(numbers))

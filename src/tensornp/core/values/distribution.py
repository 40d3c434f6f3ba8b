"""How numbers are distributed: counts over keys that need no range beforehand, and so add up.

A key is the leading bits of a number (sign, exponent, the first bits of the mantissa), or the number itself where its
dtype has no more than 16 bits. An integer of more bits has the key of the float64 of its value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.modes import never_compiled
from tensornp.core.values.histogram import NUM_BINS, Histogram, scaled
from tensornp.errors import BadRequestError

Array = np.ndarray[Any, Any]
_MIN_COUNTED = 2**18
_MANTISSA = 2**11
"""Of an unsigned integer past 2**53, the bits that a float64 does not hold."""


class Scheme(NamedTuple):
    """What the keys of a dtype are: the bits of a float, shifted; or integers, from the `least` one on."""

    float_name: str
    shift: int
    num_keys: int
    is_exact: bool
    least: int = 0

    def magnitudes(self, keys: Array) -> tuple[Array, Array]:
        """Return the smallest and the largest magnitude of each key, as float64."""
        if not self.float_name:
            return keys.astype(np.float64), keys.astype(np.float64)
        bits = np.dtype(f"u{np.dtype(self.float_name).itemsize}")
        low = keys.astype(bits) << bits.type(self.shift)
        high = low if self.is_exact else low | bits.type((1 << self.shift) - 1)
        return low.view(self.float_name).astype(np.float64), high.view(self.float_name).astype(np.float64)


_SHORT_FLOATS = Scheme("float32", 16, 2**16, is_exact=True)
_HALF = Scheme("float32", 13, 2**19, is_exact=True)
_SINGLE = Scheme("float32", 16, 2**16, is_exact=False)
_DOUBLE = Scheme("float64", 45, 2**19, is_exact=False)


def scheme_of(name: str) -> Scheme:
    """Return what the keys are of numbers that a tensor of dtype `name` stores."""
    if name in ("int2", "int4", "uint2", "uint4"):
        name = "int8"
    if name in ("bool", "int8", "uint8", "int16", "uint16"):
        bits = 8 * np.dtype(name).itemsize
        return Scheme("", 0, 2**bits, is_exact=True, least=-(2 ** (bits - 1)) if name.startswith("int") else 0)
    if name in ("float16", "float32"):
        return _HALF if name == "float16" else _SINGLE
    return _SHORT_FLOATS if name.startswith(("bfloat", "float8", "float6_", "float4")) else _DOUBLE


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
        if not self.scheme.float_name:
            values = self.keys.astype(np.float64)
            return values, values, self.counts
        sign = self.scheme.num_keys // 2
        is_negative = self.keys >= sign
        near, far = self.scheme.magnitudes(self.keys & (sign - 1))
        low, high = np.where(is_negative, -far, near), np.where(is_negative, -near, far)
        # The zero of either sign comes between them.
        order = np.lexsort((~is_negative, low))
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
            # Zero is far more often meant than the smallest of all floats, which have its key.
            first, last = (np.ceil(lows[i]), np.floor(highs[i])) if is_integer else (lows[i], highs[i])
            middle = 0.0 if first <= 0 <= last else first / 2 + last / 2
            return float(min(max(middle, low), high))

        part = rank - math.floor(rank)
        return number(below) * (1 - part) + number(above) * part if part else number(below)

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
        self._key_of = _key_function(scheme)
        self._waiting: list[Array] = []
        self._num_waiting = 0

    def add(self, values: Array) -> None:
        """Count the numbers of `values`, one-dimensional."""
        self._waiting.append(self._key_of(values))
        self._num_waiting += values.size
        # To count a few in as many bins takes longer than to count many.
        if self._num_waiting >= max(self._scheme.num_keys, _MIN_COUNTED):
            self._count()

    def _count(self) -> None:
        waiting, self._waiting, self._num_waiting = self._waiting, [], 0
        if waiting:
            self._counts += np.bincount(np.concatenate(waiting), minlength=self._scheme.num_keys)

    def finish(self, *, factor: int = 1, one_in: float = 0.0) -> Distribution:
        """Return the distribution of the finite ones that were counted, each meant `factor` times.

        `one_in` is how many elements each of a sample stands for; 0 where all were counted.
        """
        self._count()
        counts = self._counts
        if self._scheme.float_name:
            half = counts.reshape(2, -1)
            half[:, _first_infinite(self._scheme) :] = 0
        if not one_in:
            return _distribution(self._scheme, counts * factor)
        num_sampled = int(counts.sum())
        # Of a part without a sample there is none.
        return _distribution(self._scheme, counts, num_sampled, one_in * factor, rank_error_of(num_sampled))


@functools.cache
def _first_infinite(scheme: Scheme) -> int:
    bits = np.array([np.inf], scheme.float_name).view(f"u{np.dtype(scheme.float_name).itemsize}")
    return int(bits[0]) >> scheme.shift


def _key_function(scheme: Scheme) -> Callable[[Array], Array]:
    """Return what makes keys of numbers."""
    if not scheme.float_name:
        return lambda values: values.astype(np.int64) - scheme.least
    name, bits = scheme.float_name, np.dtype(f"u{np.dtype(scheme.float_name).itemsize}")

    def keys(values: Array) -> Array:
        if values.dtype.kind in "iu":
            values = _truncated(values)
        # What has 64 bits is no index for NumPy before it is signed.
        shifted: Array = values.astype(name, copy=False).view(bits) >> bits.type(scheme.shift)
        return shifted.view(bits.str.replace("u", "i"))

    return keys


def _truncated(values: Array) -> Array:
    """Return integers as float64, those of more than 53 bits rounded towards zero, so that none changes its key."""
    if values.itemsize < 8:
        return values.astype(np.float64)
    is_negative = values < 0
    size = np.where(is_negative, -values, values).view(np.uint64)
    size = np.where(size >= 2**53, size & np.uint64(2**64 - _MANTISSA), size).astype(np.float64)
    return np.where(is_negative, -size, size)

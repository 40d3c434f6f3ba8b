"""Keys of numbers, which need no range beforehand, and so add up.

A key is the leading bits of a number (sign, exponent, the first bits of the mantissa), or the number itself where its
dtype has no more than 16 bits. An integer of more bits has the key of the float64 of its value. What is less than any
normal float has a key as fine as those of others: that of how many times the smallest float it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.memory.blocks import BLOCK_NUMEL

Array = np.ndarray[Any, Any]
CountKeys = Callable[[Array, int, Array], int]
"""A compiled loop: adds to the last how many floats have each key, their bits without so many; returns how many of them
are subnormal."""
_FINE = 7
"""The bits of a mantissa that a key has."""
_KEYS_A_NUMBER = 32
"""Where there are at least so many keys for each number, those of the numbers are sorted, and not all walked."""
_MANTISSA = 2**11
"""Of an unsigned integer past 2**53, the bits that a float64 does not hold."""


class Scheme(NamedTuple):
    """What the keys of a dtype are: the bits of a float, shifted; or integers, from the `least` one on."""

    float_name: str
    shift: int
    num_keys: int
    is_exact: bool
    least: int = 0

    @property
    def stored(self) -> np.dtype[Any]:
        """The dtype of which keys are made."""
        return np.dtype(self.float_name or np.int64)

    @property
    def fine(self) -> Scheme:
        """The keys that are all bits of a number, and so the number itself."""
        bits = 8 * self.stored.itemsize
        return self if self.is_exact else Scheme(self.float_name, 0, 2**bits, is_exact=True)

    @property
    def coarse(self) -> Scheme:
        """The keys that can be counted, however many numbers there are."""
        return self if self.shift or not self.float_name else scheme_of(self.float_name)

    @property
    def sign(self) -> int:
        """How far the key of a negative float is from that of its absolute value."""
        return int(2 ** (8 * self.stored.itemsize - 1 - self.shift))

    def ranges(self, keys: Array) -> tuple[Array, Array]:
        """Return the smallest and the largest number of each key, as float64."""
        if not self.float_name:
            return keys.astype(np.float64), keys.astype(np.float64)
        is_negative = keys >= self.sign
        near, far = self._magnitudes(keys & (self.sign - 1))
        # Keys of subnormal floats come after all others, those of negative ones last.
        small = np.flatnonzero(keys >= 2 * self.sign) if not self.is_exact else ()
        if len(small):
            is_last, at = np.divmod(keys[small] - 2 * self.sign, (self.num_keys - 2 * self.sign) // 2)
            smallest = float(np.finfo(self.stored).smallest_subnormal)
            near[small], far[small] = (np.floor(some) * smallest for some in self._magnitudes(_key_of_one(self) + at))
            is_negative[small] = is_last
        return np.where(is_negative, -far, near), np.where(is_negative, -near, far)

    def _magnitudes(self, keys: Array) -> tuple[Array, Array]:
        """Return the smallest and the largest normal float of each key; 0 alone has the key 0."""
        bits = np.dtype(f"u{self.stored.itemsize}")
        low = keys.astype(bits) << bits.type(self.shift)
        high = low if self.is_exact else low | bits.type((1 << self.shift) - 1)
        high[low == 0] = 0
        return low.view(self.stored).astype(np.float64), high.view(self.stored).astype(np.float64)

    def is_sparse(self, count: int) -> bool:
        """Return whether so many keys are sorted in less time than it takes to walk the counters of all."""
        return count * _KEYS_A_NUMBER <= self.num_keys

    def tally(self, numbers: Array) -> tuple[Array, Array]:
        """Return the keys of finite numbers of the dtype `stored`, as they rise, and how many have each."""
        if not self.is_sparse(len(numbers)):
            counts = np.zeros(self.num_keys, np.int64)
            self.count_into(numbers, counts)
            return self.counted(counts)
        keys = self._leading_bits(numbers)
        if not self.is_exact:
            at, own = self._subnormals(numbers)
            keys[at] = own
        found, counts = np.unique(keys, return_counts=True)
        # All bits of a number are kept as they are.
        return found.astype(np.int32) if self.num_keys < 2**32 else found, counts.astype(np.int64)

    def tally_of(self, numbers: Array, counts: Array) -> tuple[Array, Array]:
        """Return the keys of finite numbers, as they rise, and how many have each, where there are so many of each."""
        dense = np.zeros(self.num_keys, np.int64)
        keys = self._leading_bits(numbers.astype(self.stored))
        np.add.at(dense, keys.astype(np.int64) - self.least, counts)
        return self.counted(dense)

    def counted(self, counts: Array) -> tuple[Array, Array]:
        """Return the keys of finite numbers that there are, and how many have each, from the `counts` of all."""
        # Of integers, NumPy takes twenty times as long.
        is_met = counts != 0
        if self.float_name:
            is_met[: 2 * self.sign].reshape(2, -1)[:, _first_infinite(self) :] = False
        found = np.flatnonzero(is_met)
        return (found + self.least).astype(np.int32), counts[found]

    def count_into(self, numbers: Array, counts: Array, count_keys: CountKeys | None = None) -> None:
        """Add to `counts` how many of the `numbers`, of the dtype `stored`, have each key."""
        if not self.float_name:
            counts += np.bincount(numbers - self.least, minlength=self.num_keys)
            return
        if count_keys is not None:
            num_small = count_keys(numbers, self.shift, counts)
        else:
            near_zero = self._near_zero(counts)
            num_near = near_zero.sum()
            # What has 64 bits is no index for NumPy before it is signed.
            counts += np.bincount(self._leading_bits(numbers).view(f"i{numbers.itemsize}"), minlength=self.num_keys)
            num_near = near_zero.sum() - num_near
            # Most often there are none, or these are all zeros.
            num_small = num_near and num_near - np.count_nonzero(numbers == 0)
        if not num_small or self.is_exact:
            return
        for start in range(0, len(numbers), BLOCK_NUMEL):
            part = numbers[start : start + BLOCK_NUMEL]
            at, own = self._subnormals(part)
            np.add.at(counts, own, 1)
            np.subtract.at(counts, self._leading_bits(part[at]).view(f"i{part.itemsize}"), 1)

    def _leading_bits(self, numbers: Array) -> Array:
        """Return the keys of numbers, but for those of subnormal floats."""
        bits = numbers.view(f"u{numbers.itemsize}")
        return bits >> bits.dtype.type(self.shift) if self.float_name else numbers

    def _near_zero(self, counts: Array) -> Array:
        """Return those of the counts that are of floats less than any normal one; none where keys are exact."""
        return counts[: 2 * self.sign].reshape(2, -1)[:, : 0 if self.is_exact else 2**_FINE]

    def _subnormals(self, numbers: Array) -> tuple[Array, Array]:
        """Return which of the numbers are less than any normal float, and not 0, and the keys of their own."""
        bits = numbers.view(f"u{numbers.itemsize}")
        of = bits.dtype.type
        magnitudes = bits & of(2 ** (8 * bits.itemsize - 1) - 1)
        at = np.flatnonzero((magnitudes != 0) & (magnitudes < of(2**_FINE << self.shift)))
        own = (magnitudes[at].astype(self.stored).view(bits.dtype) >> of(self.shift)).astype(np.int64)
        is_last = bits[at] != magnitudes[at]
        return at, own + 2 * self.sign - _key_of_one(self) + is_last * ((self.num_keys - 2 * self.sign) // 2)


def _scheme_of_leading_bits(name: str, num_exponent_bits: int) -> Scheme:
    """Return what the keys of floats are of which `_FINE` bits of the mantissa are told."""
    num_bits = 8 * np.dtype(name).itemsize
    num_mantissa_bits = num_bits - 1 - num_exponent_bits
    # As many binades of subnormal floats as there are bits, for both signs.
    num_keys = 2 * (2**num_exponent_bits + num_mantissa_bits) << _FINE
    return Scheme(name, num_mantissa_bits - _FINE, num_keys, is_exact=False)


_SHORT_FLOATS = Scheme("float32", 16, 2**16, is_exact=True)
_HALF = Scheme("float32", 13, 2**19, is_exact=True)
_SINGLE = _scheme_of_leading_bits("float32", 8)
_DOUBLE = _scheme_of_leading_bits("float64", 11)


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


@functools.cache
def _first_infinite(scheme: Scheme) -> int:
    return _key(scheme, np.inf)


@functools.cache
def _key_of_one(scheme: Scheme) -> int:
    return _key(scheme, 1.0)


def _key(scheme: Scheme, number: float) -> int:
    bits = np.array([number], scheme.stored).view(f"u{scheme.stored.itemsize}")
    return int(bits[0]) >> scheme.shift


def truncated(values: Array) -> Array:
    """Return integers as float64, those of more than 53 bits rounded towards zero, so that none changes its key."""
    if values.itemsize < 8:
        return values.astype(np.float64)
    is_negative = values < 0
    size = np.where(is_negative, -values, values).view(np.uint64)
    size = np.where(size >= 2**53, size & np.uint64(2**64 - _MANTISSA), size).astype(np.float64)
    return np.where(is_negative, -size, size)

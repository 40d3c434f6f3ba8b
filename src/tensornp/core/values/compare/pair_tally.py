"""Count the differences between two streams of numbers, block by block.

Of equally large differences, the largest is the first one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN, epsilon, resolve
from tensornp.core.values.compare.differing import deltas, differing, largest_delta
from tensornp.core.values.compare.numbers import (
    are_all_finite,
    as_numbers,
    as_vector,
    have_same_bits,
    norm_of_difference,
    of_one_kind,
    plain_number,
)
from tensornp.core.values.compare.ulps import most_ulps
from tensornp.core.values.stats.figures import scratch, sum_of_squares, widened
from tensornp.core.values.stats.norms import Norm, Sides, cosine_distance, norm_of, relative_size, sides_of, size_of

Array = np.ndarray[Any, Any]
_ULPS_OF_A_FACTOR = 2
_SHORT_EPSILON = 1e-5
"""Of float16, bfloat16 and shorter ones, the distance from 1 to the next number is larger."""


_BITS_TOLD = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 bfloat16 float32 float64 complex64 complex128".split()
"""Of these dtypes, numbers of equal bits are equal bits.

Others are widened, which merges the payloads of NaN, and any byte but 0 is the same True.
"""
_MOST_FEW = 2**10
"""Numbers that are looked at before the rest of a block."""


class PairTally:
    """The state of one comparison of numbers of two dtypes, given by their names."""

    def __init__(self, first_dtype: str, second_dtype: str) -> None:
        self._dtypes = first_dtype, second_dtype
        self._is_one_dtype = first_dtype == second_dtype
        self._parts: list[Sides] = []
        self._largest: tuple[int, Any] = (1, 0)
        self.largest_at: int | None = None
        self._factor: float | None = None
        self._may_be_scaled, self._has_infinite = True, False
        self._epsilon = epsilon(second_dtype) if _is_float(second_dtype) else 0.0
        self.count = self.num_changed = self.finite = self.only_first = self.only_second = 0
        self.has_same_bits = self._is_one_dtype
        # Bits of which the numbers do not tell are looked at by themselves.
        self.bits_are_told = first_dtype in _BITS_TOLD
        self.is_cast_of_first = self.is_cast_of_second = not self._is_one_dtype
        self.max_ulp: int | None = 0 if self._is_one_dtype and _is_float(first_dtype) else None
        self.first: int | None = None
        self.first_values: tuple[Any, Any] | None = None

    @property
    def factor(self) -> float | None:
        """What the first is multiplied by to give the second, if one number does that for all."""
        is_told = self._may_be_scaled and self._factor and not (self._factor < 0 and self._has_infinite)
        return self._factor if is_told else None

    def add(self, a: Array, b: Array) -> None:
        """Add two flat blocks of equal length."""
        is_of_one_dtype = self._is_one_dtype and a.dtype == b.dtype
        a, b = as_numbers(a, b)
        start, self.count = self.count, self.count + a.size
        if is_of_one_dtype and have_same_bits(a, b):
            self._add_equal(a)
            return
        self.has_same_bits = False
        self._check_casts(a, b)
        if not self._add_finite_floats(a, b, start):
            self._add_any(a, b, start)

    def _add_equal(self, a: Array) -> None:
        finite = a[np.isfinite(a)] if a.dtype.kind in "fc" and not are_all_finite(a) else a
        self.finite += finite.size
        if finite.size:
            norm = norm_of(as_vector(finite))
            self._parts.append(Sides(norm, norm, Norm(0.0), 1.0))
            # No other factor is that of all.
            self._may_be_scaled &= self._factor in (None, 1.0) or not norm.share
            self._factor = 1.0 if norm.share else self._factor

    def _add_finite_floats(self, a: Array, b: Array, start: int) -> bool:
        """Take two blocks of floats that are all finite; False where they are not, or their squares are no floats."""
        if a.dtype.kind != "f" or b.dtype.kind != "f" or a.itemsize > 8 or b.itemsize > 8:
            return False
        with np.errstate(all="ignore"):
            wide_a, wide_b = widened(a, 0), widened(b, 1)
            difference = np.subtract(wide_b, wide_a, out=scratch(a.size, 2))
            vectors = wide_a, wide_b, difference
            squares = [sum_of_squares(values) for values in vectors]
        if not all(value < math.inf for value in squares):
            return False
        self.finite += a.size
        first, second, third = (norm_of(*pair) for pair in zip(vectors, squares, strict=True))
        self._parts.append(sides_of(wide_a, wide_b, first, second, third))
        # Gradual underflow: what differs has a difference.
        is_changed = difference != 0
        num_changed = int(np.count_nonzero(is_changed))
        self.num_changed += num_changed
        if num_changed:
            self._note_first(a, b, int(is_changed.argmax()), start)
            ends = sorted((int(difference.argmax()), int(difference.argmin())))
            at = max(ends, key=lambda end: abs(difference[end]))
            self._note_largest((1, abs(difference[at])), start + at)
        self._check_factor(wide_a, wide_b)
        if num_changed and self.max_ulp is not None:
            self.max_ulp = max(self.max_ulp, most_ulps(a, b, self._dtypes[0]))
        return True

    def _note_first(self, a: Array, b: Array, at: int, start: int) -> None:
        if self.first is None:
            self.first, self.first_values = start + at, (plain_number(a[at]), plain_number(b[at]))

    def _note_largest(self, size: tuple[int, Any], at: int) -> None:
        """Take the largest difference of a block, as a factor and a number, and where it is."""
        if size > self._largest:
            self._largest, self.largest_at = size, at

    def _add_any(self, a: Array, b: Array, start: int) -> None:
        is_mixed = a.dtype.kind != b.dtype.kind and a.dtype.kind in "iu" and b.dtype.kind in "iu"
        integers = (a, b) if is_mixed else None
        a, b = of_one_kind(a, b)
        at = np.flatnonzero(differing(a, b))
        if len(at):
            self._note_first(a, b, int(at[0]), start)
        self.num_changed += len(at)
        finite_a, finite_b = np.isfinite(a), np.isfinite(b)
        both = finite_a & finite_b
        num_both = int(np.count_nonzero(both))
        self.finite += num_both
        self.only_first += int(np.count_nonzero(finite_a)) - num_both
        self.only_second += int(np.count_nonzero(finite_b)) - num_both
        left, right = (a, b) if num_both == a.size else (a[both], b[both])
        if left.size:
            vectors = as_vector(left), as_vector(right)
            norms = norm_of(vectors[0]), norm_of(vectors[1]), norm_of_difference(left, right)
            self._parts.append(sides_of(*vectors, *norms))
        if num_both < a.size:
            # An infinity stays one under a positive factor, and a NaN under any.
            self._may_be_scaled &= not len(at[~both[at]])
            self._has_infinite = True
        self._check_factor(left, right)
        changed = at[both[at]]
        if not len(changed):
            return
        old, new = (values[changed] for values in (a, b))
        size, scale, _ = deltas(old, new)
        place = int(size.argmax())
        # Of integers with and without a sign, the long floats tell the place, and not all digits.
        largest = (scale, size[place]) if integers is None else (1, largest_delta(*integers))
        self._note_largest(largest, start + int(changed[place]))
        if self.max_ulp is not None:
            self.max_ulp = max(self.max_ulp, most_ulps(old, new, self._dtypes[0]))

    def _check_casts(self, a: Array, b: Array) -> None:
        """Find out whether one side is the other in its own dtype."""
        first, second = self._dtypes
        if self.is_cast_of_first:
            self.is_cast_of_first = _is_cast(a, second, b)
        if self.is_cast_of_second:
            self.is_cast_of_second = _is_cast(b, first, a)

    def _check_factor(self, a: Array, b: Array) -> None:
        """Find out whether all of the second is the first times one number, but for the last rounding."""
        if not self._may_be_scaled or not a.size:
            return
        if not all(_is_float(name) for name in self._dtypes) or self.only_first or self.only_second:
            self._may_be_scaled = False
            return
        if self._factor is None:
            at = int(np.abs(a).argmax())
            if not a[at]:
                self._may_be_scaled = not b.any()
                return
            self._factor = float(np.float64(b[at]) / np.float64(a[at]))
        # Most often a few tell that there is none.
        self._may_be_scaled = (
            self._factor != 1
            and math.isfinite(self._factor)
            and self._are_products(a[:_MOST_FEW], b[:_MOST_FEW], self._factor)
            and self._are_products(a[_MOST_FEW:], b[_MOST_FEW:], self._factor)
        )

    def _are_products(self, a: Array, b: Array, factor: float) -> bool:
        """Return whether all of the second is the first times the factor, but for the last rounding."""
        wide_a, wide_b = (values.astype(np.float64, copy=False) for values in (a, b))
        expected = wide_a * factor
        if self._epsilon < _SHORT_EPSILON:
            is_product = np.abs(wide_b - expected) <= _ULPS_OF_A_FACTOR * self._epsilon * np.abs(expected)
        else:
            # A short float is the rounded product, or it is none: one unit more would let any noise pass.
            is_product = wide_b == expected.astype(resolve(self._dtypes[1])).astype(np.float64)
        return bool(is_product.all())

    def distances(self) -> tuple[float | int | None, float | None, float | None]:
        """Return the largest size of a difference, its norm over that of the first, and 1 − cos of the angle."""
        if not self.finite:
            return None, None, None
        scale, largest = self._largest
        size = (plain_number(largest) if hasattr(largest, "item") else largest) * scale
        return size, relative_size(self._parts), cosine_distance(self._parts)

    def norms(self) -> tuple[float | None, float | None]:
        """Return the norms of the first and of the difference, of what is finite on both sides."""
        if not self.finite:
            return None, None
        return size_of([part.first for part in self._parts]), size_of([part.difference for part in self._parts])


def _is_float(name: str) -> bool:
    return name in KNOWN and name.startswith(("float", "bfloat")) and KNOWN[name].values_per_element == 1


def _is_cast(source: Array, name: str, target: Array) -> bool:
    """Return whether `target` is what `source` becomes as numbers of the dtype `name`."""
    facts = KNOWN.get(name)
    if facts is None or facts.values_per_element > 1 or name == "complex32":
        return False
    with np.errstate(all="ignore"):
        cast = source.real if source.dtype.kind == "c" and not name.startswith("complex") else source
        return not differing(cast.astype(resolve(name)).astype(target.dtype), target).any()

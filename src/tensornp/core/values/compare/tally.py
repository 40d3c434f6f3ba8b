"""Count the differences between two streams of numbers, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN, resolve
from tensornp.core.values.compare.numbers import differing, of_one_kind, plain_number, shown_alike, sizes_of_change

Array = np.ndarray[Any, Any]
_CHUNK_NUMEL = 2**16
"""Elements that are compared at once: the system maps larger temporary arrays anew each time."""


class PairTally:
    def __init__(self, first_dtype: str, second_dtype: str) -> None:
        self._dtypes = first_dtype, second_dtype
        is_one_dtype = first_dtype == second_dtype
        self._squares = np.zeros(3)
        self.largest: Any = 0
        self.largest_at: int | None = None
        self.count = self.num_changed = self.finite = self.only_first = self.only_second = 0
        self.has_same_bits = is_one_dtype
        self.is_cast_of_first = self.is_cast_of_second = not is_one_dtype
        is_float = first_dtype.startswith(("float", "bfloat")) and first_dtype in KNOWN
        is_float = is_float and KNOWN[first_dtype].values_per_element == 1
        self.max_ulp: int | None = 0 if is_one_dtype and is_float else None
        self.first: int | None = None
        self.first_values: tuple[Any, Any] | None = None

    def add(self, a: Array, b: Array) -> None:
        for i in range(0, a.size, _CHUNK_NUMEL):
            self._add(a[i : i + _CHUNK_NUMEL], b[i : i + _CHUNK_NUMEL])

    def _add(self, a: Array, b: Array) -> None:
        start, self.count = self.count, self.count + a.size
        a, b = shown_alike(a, b)
        if self.is_cast_of_first:
            self.is_cast_of_first = _is_cast(a, self._dtypes[1], b)
        if self.is_cast_of_second:
            self.is_cast_of_second = _is_cast(b, self._dtypes[0], a)
        a, b = of_one_kind(a, b)
        if self.has_same_bits:
            self.has_same_bits = np.array_equal(_bits(a), _bits(b))
        x, y = _vector(a), _vector(b)
        squares = [np.einsum("i,i", one, one) for one in (x, y)]
        places = None
        if not np.isfinite(squares[0] + squares[1]):
            finite_a, finite_b = np.isfinite(a), np.isfinite(b)
            places = np.flatnonzero(finite_a & finite_b)
            self.only_first += int(np.count_nonzero(finite_a)) - len(places)
            self.only_second += int(np.count_nonzero(finite_b)) - len(places)
        differs = differing(a, b) if places is not None else a != b
        self.num_changed += int(np.count_nonzero(differs))
        if self.first is None and differs.any():
            at = int(differs.argmax())
            self.first, self.first_values = start + at, (plain_number(a[at]), plain_number(b[at]))
        if places is not None:
            a, b = a[places], b[places]
            x, y = _vector(a), _vector(b)
            squares = [np.einsum("i,i", one, one) for one in (x, y)]
        self.finite += a.size
        if not a.size:
            return
        sizes = sizes_of_change(a, b)
        d = _vector(sizes)
        squares.append(np.einsum("i,i", d, d))
        self._squares += squares
        at = int(sizes.argmax())
        if sizes[at]:
            size = plain_number(sizes[at])
            if size > self.largest:
                self.largest, self.largest_at = size, start + (at if places is None else int(places[at]))
            if self.max_ulp is not None:
                self.max_ulp = max(self.max_ulp, _most_ulps(a, b, self._dtypes[0]))

    def norms(self) -> tuple[float, float, float]:
        first, second, difference = np.sqrt(self._squares).tolist()
        return first, second, difference


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{min(values.itemsize, 8)}")


def _vector(values: Array) -> Array:
    if values.dtype.kind == "c":
        return np.ascontiguousarray(values, np.complex128).view(np.float64)
    return values.astype(np.float64, copy=False)


def _is_cast(source: Array, name: str, target: Array) -> bool:
    facts = KNOWN.get(name)
    if facts is None or facts.values_per_element > 1 or name == "complex32":
        return False
    cast = source.real if source.dtype.kind == "c" and not name.startswith("complex") else source
    return not differing(cast.astype(resolve(name)).astype(target.dtype), target).any()


def _most_ulps(a: Array, b: Array, name: str) -> int:
    """Return the largest distance of two blocks, in representable numbers of the dtype `name`."""
    dtype = resolve(name)
    if name == "float8_e8m0fnu":
        # Powers of two without a sign.
        exponents = [np.frexp(values)[1] for values in (a, b)]
        return int(np.abs(exponents[0] - exponents[1]).max(initial=0))
    kind = np.dtype(f"i{dtype.itemsize}")
    bits = [np.ascontiguousarray(values, dtype).view(kind) for values in (a, b)]
    # The place of each float among all of its dtype, in order; both zeros are 0.
    first, second = (np.where(one < 0, np.iinfo(kind).min - one.astype(np.int64), one) for one in bits)
    # A difference that does not fit 64 bits fits the unsigned ones.
    return int(np.where(first > second, first - second, second - first).view(np.uint64).max(initial=0))

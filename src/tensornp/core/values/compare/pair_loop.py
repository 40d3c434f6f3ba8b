"""The compiled loops over two blocks of one dtype, as what they find; what they leave is done by NumPy."""

from __future__ import annotations

import functools
import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.values.reading.decode import decoder, stored_dtype
from tensornp.core.values.stats import fast
from tensornp.core.values.stats.norms import Norm, Sides, sides_by_norms

Array = np.ndarray[Any, Any]
MIN_NUMEL = 2**20
"""Elements from which on it is worth to load what is compiled."""
SHORT = ("bfloat16", "float16")
"""Of these, the loops take the bits."""
_LOOPS = {
    "floats": ("float32", "float64"), "bfloats": ("bfloat16",), "halves": ("float16",),
    "integers": ("int8", "uint8", "int16", "uint16", "int32", "uint32"), "longs": ("int64", "uint64"),
    "complexes": ("complex64", "complex128"),
}  # fmt: skip
_LEAST_SQUARES = 1e-280
"""A smaller sum of squares may lack some that are too small for a float."""


class Found(NamedTuple):
    """What one pass over two blocks has found; places count from the beginning of the block, and -1 is none.

    `sides` are those of what is finite on both sides, None where nothing is; `num_odd` are those that differ, and of
    which one is not finite. Of complex numbers, `largest` has no place, and may be off in the last digit.
    """

    sides: Sides | None
    num_changed: int
    first: int
    largest_at: int
    finite: int
    only_first: int
    only_second: int
    num_odd: int
    has_same_bits: bool
    largest: float | int
    max_ulp: int


class PairLoop:
    """The loop for one dtype: it takes blocks in a row, of short floats their bits."""

    def __init__(self, name: str, compiled: ModuleType) -> None:
        self._name, self._compiled = name, compiled
        self._loop = next(loop for loop, names in _LOOPS.items() if name in names)
        stored = stored_dtype(name)
        self._decode, self._stored = decoder(name), stored
        itemsize = stored.itemsize // 2 if self._loop == "complexes" else stored.itemsize
        self.is_complex = self._loop == "complexes"
        self._signed, self._float = np.dtype(f"i{itemsize}"), np.dtype(f"f{max(itemsize, 2)}")
        self._most = np.zeros(1, np.uint64 if stored.kind in "iu" and name not in SHORT else f"u{itemsize}")
        self._counts = np.full(9, 0, np.int64)
        self._counts[[compiled.FIRST, compiled.LARGEST_AT]] = -1

    def numbers(self, block: Array) -> Array:
        """Return the numbers of a block."""
        return self._decode(block.view(self._stored))

    def found(self, a: Array, b: Array) -> Found | None:
        """Return what differs between two blocks; None where norms and squares of their numbers do not tell all."""
        a, b = (values if values.flags.carray else values.copy() for values in (a, b))
        sums, counts, most = np.zeros(3), self._counts.copy(), self._most.copy()
        self._take(a, b, sums, counts, most)
        changed, first, largest_at, finite, only_first, only_second, odd, other_bits, _ = counts.tolist()
        sides = None
        if finite:
            norms = self._norms(a, b, sums.tolist(), changed > odd)
            sides = sides_by_norms(*norms) if norms is not None and other_bits else None
            if norms is not None and not other_bits:
                sides = Sides(norms[0], norms[0], Norm(0.0), 1.0)
            if sides is None:
                return None
        distance = int(most[0])
        largest: float | int = distance if self._loop == "longs" else float(counts[-1:].view(np.float64)[0])
        if self._loop == "integers":
            largest = int(largest)
        elif self._loop == "complexes":
            largest = math.sqrt(largest)
        return Found(
            sides, changed, first, largest_at, finite, only_first, only_second, odd, not other_bits, largest, distance
        )

    def _take(self, a: Array, b: Array, sums: Array, counts: Array, most: Array) -> None:
        loop = getattr(self._compiled, self._loop)
        if self._loop in ("integers", "longs"):
            loop(a, b, sums, counts, most)
        elif self._loop == "floats":
            loop(a, b, a.view(self._signed), b.view(self._signed), sums, counts, most)
        elif self._loop == "complexes":
            parts = a.view(self._float), b.view(self._float)
            loop(a, b, *parts, *(part.view(self._signed) for part in parts), sums, counts)
        else:
            wide = (np.empty(self._compiled.CHUNK_NUMEL, np.float32) for _ in "ab")
            loop(a.view(self._signed), b.view(self._signed), *wide, sums, counts, most)

    def _norms(self, a: Array, b: Array, squares: list[float], is_changed: bool) -> tuple[Norm, Norm, Norm] | None:
        """Return the norms of both and of the difference; None where squares are too large or too small for a float."""
        if not all(square == 0 or _LEAST_SQUARES < square < math.inf for square in squares):
            return None
        if is_changed and not squares[2]:
            return None
        # Squares of shorter ones are floats.
        if (
            self._loop in ("floats", "complexes")
            and self._float.itemsize == 8
            and any(
                not square and values[np.isfinite(values)].any()
                for square, values in zip(squares, (a, b), strict=False)
            )
        ):
            return None
        first, second, third = (Norm(math.sqrt(square)) for square in squares)
        return first, second, third


@functools.cache
def pair_loop(name: str) -> PairLoop | None:
    """Return the loop for a dtype of this name; None where there is none, or numba is not there."""
    return fast.loaded(lambda: _tried(name)) if any(name in names for names in _LOOPS.values()) else None


def _tried(name: str) -> PairLoop:
    """Compile a loop, and raise what is wrong if it does not compute what it should of a few numbers."""
    from tensornp.core.values.compare import kernels

    loop, last = PairLoop(name, kernels), 2 * kernels.CHUNK_NUMEL + 99
    # Small integers in three chunks, and a last one that may be NaN.
    integers = np.arange(last + 1) % 8
    changed = integers.copy()
    changed[[3, last - 50]] += 1, 5
    a, b = (values.astype("float32" if name == "bfloat16" else name) for values in (integers, changed))
    if a.dtype.kind in "fc":
        a[last] = b[last] = np.nan
    if name in SHORT:
        a, b = (values.view(np.uint32) >> 16 if name == "bfloat16" else values for values in (a, b))
        a, b = (values.astype(np.uint16) if name == "bfloat16" else values.view(np.uint16) for values in (a, b))
    found = loop.found(a, b)
    finite = last + (name not in SHORT and a.dtype.kind in "iu")
    norms = [math.sqrt(values @ values) for values in (integers[:finite], changed[:finite], (changed - integers))]
    place = -1 if loop.is_complex else last - 50
    if found is None or found.sides is None or [norm.share for norm in found.sides[:3]] != norms:
        raise ArithmeticError("it does not add up here what it should")
    if found[1:-1] != (2, 3, place, finite, 0, 0, 0, False, 5):
        raise ArithmeticError("it does not compare here what it should")
    return loop

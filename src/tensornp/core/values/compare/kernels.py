"""Loops over two blocks of numbers, compiled by numba: each walks what the first cache holds of both.

A sum may be taken in the order that the processor likes best; of as many numbers it is always the same one. What is
found is added to arrays: to `sums` the sums of squares of the first, of the second and of the difference; to `counts`
what the numbers below name; to `most`, of unsigned integers, the largest distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # type: ignore[import-not-found,unused-ignore]  # an extra

CHUNK_NUMEL = 2**12
"""What stays of both in the first cache while one loop after the other walks it."""
CHANGED, FIRST, LARGEST_AT, FINITE, ONLY_FIRST, ONLY_SECOND, ODD, OTHER_BITS, LARGEST = range(9)
"""Where `counts` has how many differ, where the first one does, and where the largest difference is (-1: nowhere), how
many are finite on both sides or on one, how many are not and differ, whether bits differ, and the largest difference:
an integer, or the bits of a float64."""
_FEW = 2**8
_SIZE_BITS = np.int64(2**63 - 1)
_HALF_EXPONENT, _HALF_TOP, _HALF_LEAST = np.uint32(112 << 23), np.uint32(0x1F << 23), np.float32(2.0**-14)


@njit(nogil=True, cache=True)
def floats(a: Any, b: Any, codes_a: Any, codes_b: Any, sums: Any, counts: Any, most: Any) -> None:
    """Take floats of 32 or 64 bits, and their bits as signed integers."""
    for start in range(0, len(a), CHUNK_NUMEL):
        end = min(start + CHUNK_NUMEL, len(a))
        _floats(a[start:end], b[start:end], codes_a[start:end], codes_b[start:end], start, sums, counts, most)


@njit(nogil=True, cache=True)
def bfloats(codes_a: Any, codes_b: Any, wide_a: Any, wide_b: Any, sums: Any, counts: Any, most: Any) -> None:
    """Take the bits of bfloat16 as signed integers; `wide_a` and `wide_b` are for a chunk of float32."""
    for start in range(0, len(codes_a), CHUNK_NUMEL):
        some_a, some_b = codes_a[start : start + CHUNK_NUMEL], codes_b[start : start + CHUNK_NUMEL]
        for codes, wide in ((some_a, wide_a), (some_b, wide_b)):
            for i in range(len(codes)):
                wide[i] = np.uint32(np.uint32(np.uint16(codes[i])) << np.uint32(16)).view(np.float32)
        _floats(wide_a[: len(some_a)], wide_b[: len(some_b)], some_a, some_b, start, sums, counts, most)


@njit(nogil=True, cache=True)
def halves(codes_a: Any, codes_b: Any, wide_a: Any, wide_b: Any, sums: Any, counts: Any, most: Any) -> None:
    """Take the bits of float16, as `bfloats` does."""
    for start in range(0, len(codes_a), CHUNK_NUMEL):
        some_a, some_b = codes_a[start : start + CHUNK_NUMEL], codes_b[start : start + CHUNK_NUMEL]
        for codes, wide in ((some_a, wide_a), (some_b, wide_b)):
            for i in range(len(codes)):
                wide[i] = _half(codes[i])
        _floats(wide_a[: len(some_a)], wide_b[: len(some_b)], some_a, some_b, start, sums, counts, most)


@njit(nogil=True, cache=True)
def _half(code: Any) -> Any:
    """Return the float32 of a float16: its exponent is moved; what has none is taken off one that has."""
    size = np.uint32(np.uint32(np.uint32(code) & np.uint32(0x7FFF)) << np.uint32(13))
    sign = np.uint32(np.uint32(np.uint32(code) & np.uint32(0x8000)) << np.uint32(16))
    bits = np.uint32(size + _HALF_EXPONENT)
    small = np.float32(np.uint32(bits + np.uint32(1 << 23)).view(np.float32) - _HALF_LEAST)
    bits = np.uint32(bits + _HALF_EXPONENT) if size >= _HALF_TOP else bits
    bits = np.float32(small).view(np.uint32) if size < np.uint32(1 << 23) else bits
    return np.uint32(bits | sign).view(np.float32)


@njit(nogil=True, cache=True)
def integers(a: Any, b: Any, sums: Any, counts: Any, most: Any) -> None:
    """Take integers of fewer than 64 bits, of which a float64 holds the differences exactly."""
    for start in range(0, len(a), CHUNK_NUMEL):
        some_a, some_b = a[start : start + CHUNK_NUMEL], b[start : start + CHUNK_NUMEL]
        if _are_equal(some_a, some_b):
            _add(_squares(some_a), _squares(some_a), 0.0, len(some_a), sums, counts)
        else:
            counts[OTHER_BITS] = 1
            first, second, third, largest = _sums(some_a, some_b)
            _add(first, second, third, len(some_a), sums, counts)
            _note_changes(some_a, some_b, start, _num_changed(some_a, some_b), counts)
            if largest > counts[LARGEST]:
                counts[LARGEST], counts[LARGEST_AT] = largest, start + _place_of(some_a, some_b, largest)


@njit(nogil=True, cache=True)
def longs(a: Any, b: Any, sums: Any, counts: Any, most: Any) -> None:
    """Take integers of 64 bits; of their largest difference all digits are in `most`."""
    for start in range(0, len(a), CHUNK_NUMEL):
        some_a, some_b = a[start : start + CHUNK_NUMEL], b[start : start + CHUNK_NUMEL]
        if _are_equal(some_a, some_b):
            _add(_squares(some_a), _squares(some_a), 0.0, len(some_a), sums, counts)
        else:
            counts[OTHER_BITS] = 1
            first, second, third, largest = _sums_of_longs(some_a, some_b)
            _add(first, second, third, len(some_a), sums, counts)
            _note_changes(some_a, some_b, start, _num_changed(some_a, some_b), counts)
            if largest > most[0]:
                most[0], counts[LARGEST_AT] = largest, start + _place_of_size(some_a, some_b, largest)


@njit(nogil=True, cache=True)
def complexes(a: Any, b: Any, parts_a: Any, parts_b: Any, bits_a: Any, bits_b: Any, sums: Any, counts: Any) -> None:
    """Take complex numbers, the floats of their parts, and the bits of these; where the largest one is, is not told.

    Instead of its bits, `counts` has those of its square, but for the last of them.
    """
    for start in range(0, len(a), CHUNK_NUMEL // 2):
        end = min(start + CHUNK_NUMEL // 2, len(a))
        some_a, some_b = a[start:end], b[start:end]
        first_parts, second_parts = parts_a[2 * start : 2 * end], parts_b[2 * start : 2 * end]
        if _are_equal(bits_a[2 * start : 2 * end], bits_b[2 * start : 2 * end]):
            squares = _squares(first_parts)
            if np.isfinite(squares):
                _add(squares, squares, 0.0, end - start, sums, counts)
                continue
        else:
            counts[OTHER_BITS] = 1
        first, second, third, _ = _sums(first_parts, second_parts)
        if np.isfinite(first) and np.isfinite(second) and np.isfinite(third):
            _add(first, second, third, end - start, sums, counts)
            changed, largest = _complex_changes(first_parts, second_parts)
            _note_changes(some_a, some_b, start, changed, counts)
            counts[LARGEST] = max(counts[LARGEST], largest)
        else:
            _any_complexes(some_a, some_b, start, sums, counts)


@njit(nogil=True, cache=True)
def _floats(a: Any, b: Any, codes_a: Any, codes_b: Any, start: Any, sums: Any, counts: Any, most: Any) -> None:
    """Take a chunk of floats, of which the first has the number `start`."""
    if _are_equal(codes_a, codes_b):
        squares = _squares(a)
        if np.isfinite(squares):
            _add(squares, squares, 0.0, len(a), sums, counts)
            return
    else:
        counts[OTHER_BITS] = 1
        first, second, third, largest = _sums(a, b)
        if np.isfinite(first) and np.isfinite(second) and np.isfinite(third):
            _add(first, second, third, len(a), sums, counts)
            changed, distance = _distances(codes_a, codes_b, most)
            most[0] = max(most[0], distance)
            _note_changes(a, b, start, changed, counts)
            if largest > counts[LARGEST]:
                counts[LARGEST], counts[LARGEST_AT] = largest, start + _place_of(a, b, largest)
            return
    _any_floats(a, b, codes_a, codes_b, start, sums, counts, most)


@njit(nogil=True, cache=True)
def _add(first: Any, second: Any, third: Any, finite: Any, sums: Any, counts: Any) -> None:
    sums[0] += first
    sums[1] += second
    sums[2] += third
    counts[FINITE] += finite


@njit(nogil=True, cache=True)
def _note_changes(a: Any, b: Any, start: Any, changed: Any, counts: Any) -> None:
    if changed and counts[FIRST] < 0:
        counts[FIRST] = start + _first_change(a, b)
    counts[CHANGED] += changed


@njit(nogil=True, cache=True)
def _any_floats(a: Any, b: Any, codes_a: Any, codes_b: Any, start: Any, sums: Any, counts: Any, most: Any) -> None:
    """Take a chunk in which not all are finite, or have finite squares."""
    first_squares, second_squares, squares = 0.0, 0.0, 0.0
    for i in range(len(a)):
        first, second = np.float64(a[i]), np.float64(b[i])
        if _is_finite_pair(first, second, start + i, counts):
            difference = np.float64(second - first)
            first_squares += first * first
            second_squares += second * second
            squares += difference * difference
            size = difference.view(np.int64) & _SIZE_BITS
            if size > counts[LARGEST]:
                counts[LARGEST], counts[LARGEST_AT] = size, start + i
            most[0] = max(most[0], _distances(codes_a[i : i + 1], codes_b[i : i + 1], most)[1])
        if i % _FEW == _FEW - 1 or i == len(a) - 1:
            _add(first_squares, second_squares, squares, 0, sums, counts)
            first_squares, second_squares, squares = 0.0, 0.0, 0.0


@njit(nogil=True, cache=True)
def _any_complexes(a: Any, b: Any, start: Any, sums: Any, counts: Any) -> None:
    """Take such a chunk of complex numbers."""
    first_squares, second_squares, squares = 0.0, 0.0, 0.0
    for i in range(len(a)):
        first, second = np.complex128(a[i]), np.complex128(b[i])
        if _is_finite_pair(first, second, start + i, counts):
            square = np.float64(_square(second - first))
            first_squares += _square(first)
            second_squares += _square(second)
            squares += square
            counts[LARGEST] = max(counts[LARGEST], square.view(np.int64))
        if i % _FEW == _FEW - 1 or i == len(a) - 1:
            _add(first_squares, second_squares, squares, 0, sums, counts)
            first_squares, second_squares, squares = 0.0, 0.0, 0.0


@njit(nogil=True, cache=True)
def _is_finite_pair(first: Any, second: Any, at: Any, counts: Any) -> bool:
    """Return whether both are finite, and count; of complex numbers a NaN is one that has a part that is."""
    is_first, is_second = np.isfinite(first), np.isfinite(second)
    is_changed = first != second and not (np.isnan(first) and np.isnan(second))
    if is_changed:
        counts[CHANGED] += 1
        counts[FIRST] = at if counts[FIRST] < 0 else counts[FIRST]
    if is_first and is_second:
        counts[FINITE] += 1
        return True
    counts[ODD] += is_changed
    counts[ONLY_FIRST] += is_first
    counts[ONLY_SECOND] += is_second
    return False


@njit(nogil=True, cache=True)
def _square(number: Any) -> Any:
    return number.real * number.real + number.imag * number.imag


@njit(nogil=True, cache=True)
def _are_equal(codes_a: Any, codes_b: Any) -> bool:
    for start in range(0, len(codes_a), _FEW):
        # By unsigned numbers: to cut parts out counts references, and of signed ones each is asked for its sign.
        if _has_change(codes_a, codes_b, np.uint64(start), np.uint64(min(start + _FEW, len(codes_a)))):
            return False
    return True


@njit(nogil=True, cache=True)
def _has_change(codes_a: Any, codes_b: Any, start: Any, end: Any) -> Any:
    kind = codes_a.dtype.type
    bits = kind(0)
    for i in range(start, end):
        bits = kind(bits | kind(codes_a[i] ^ codes_b[i]))
    return bits != 0


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _squares(a: Any) -> Any:
    squares = 0.0
    for i in range(len(a)):
        squares += np.float64(a[i]) * np.float64(a[i])
    return squares


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _sums(a: Any, b: Any) -> Any:
    first, second, third, largest = 0.0, 0.0, 0.0, np.int64(0)
    for i in range(len(a)):
        x, y = np.float64(a[i]), np.float64(b[i])
        difference = np.float64(y - x)
        first += x * x
        second += y * y
        third += difference * difference
        # Sizes of floats have the order of their bits, the largest of which is found many at a time.
        largest = max(largest, difference.view(np.int64) & _SIZE_BITS)
    return first, second, third, largest


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _sums_of_longs(a: Any, b: Any) -> Any:
    first, second, third, largest = 0.0, 0.0, 0.0, np.uint64(0)
    for i in range(len(a)):
        x, y = np.float64(a[i]), np.float64(b[i])
        size = np.uint64(np.uint64(max(a[i], b[i])) - np.uint64(min(a[i], b[i])))
        first += x * x
        second += y * y
        third += np.float64(size) * np.float64(size)
        largest = max(largest, size)
    return first, second, third, largest


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _complex_changes(parts_a: Any, parts_b: Any) -> Any:
    """Return how many finite complex numbers differ, and the bits of the largest square of a difference."""
    changed, largest = np.int64(0), np.int64(0)
    for i in range(len(parts_a) // 2):
        real = np.float64(parts_b[2 * i]) - np.float64(parts_a[2 * i])
        imag = np.float64(parts_b[2 * i + 1]) - np.float64(parts_a[2 * i + 1])
        changed += (real != 0) | (imag != 0)
        largest = max(largest, np.float64(real * real + imag * imag).view(np.int64))
    return changed, largest


@njit(nogil=True, cache=True)
def _num_changed(a: Any, b: Any) -> Any:
    changed = np.int32(0)
    for i in range(len(a)):
        changed = np.int32(changed + np.int32(a[i] != b[i]))
    return np.int64(changed)


@njit(nogil=True, cache=True)
def _distances(codes_a: Any, codes_b: Any, most: Any) -> Any:
    """Return how many floats differ, and the most numbers between two, from their places among all."""
    kind, size = codes_a.dtype.type, most.dtype.type
    # Those of negative floats fall as these rise; from here on they are counted downwards from 0.
    last = kind(~kind(~size(0) >> size(1)))
    changed, distance = kind(0), size(0)
    for i in range(len(codes_a)):
        x, y = codes_a[i], codes_b[i]
        x = x if x >= 0 else kind(last - x)
        y = y if y >= 0 else kind(last - y)
        distance = max(distance, size(size(max(x, y)) - size(min(x, y))))
        changed = kind(changed + kind(x != y))
    return np.int64(changed), distance


@njit(nogil=True, cache=True)
def _first_change(a: Any, b: Any) -> int:
    for i in range(len(a)):
        if a[i] != b[i]:
            return i
    return -1


@njit(nogil=True, cache=True)
def _place_of(a: Any, b: Any, largest: Any) -> int:
    """Return where the difference is of the size of these bits."""
    for i in range(len(a)):
        if np.float64(np.float64(b[i]) - np.float64(a[i])).view(np.int64) & _SIZE_BITS == largest:
            return i
    return -1


@njit(nogil=True, cache=True)
def _place_of_size(a: Any, b: Any, largest: Any) -> int:
    """Return where integers of 64 bits differ by so much."""
    for i in range(len(a)):
        if np.uint64(np.uint64(max(a[i], b[i])) - np.uint64(min(a[i], b[i]))) == largest:
            return i
    return -1

"""Sums and code counts of float32 blocks by numba, if it is installed: the extra `fast`.

Benchmark rows "the figures" and "figures and distribution" in tests/benchmarks/values.py fail without it.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.values.stats.figures import Walked

Array = np.ndarray[Any, Any]
MAX_NBYTES_PLAIN = 2**22
"""Bytes of float32 up to which NumPy is fast enough."""
_NUM_CACHED = 2**12
"""Elements that stay in the first cache for the second loop."""
_log = logging.getLogger("tensornp")


def _find(floats: Any, signed: Any, unsigned: Any, sums: Any, ends: Any) -> None:
    """Find the sum, the sum of squares, and the ends of the bits as signed and as unsigned integers."""
    total, squares = 0.0, 0.0
    least, most, first, last = signed[0], signed[0], unsigned[0], unsigned[0]
    for start in range(0, len(floats), _NUM_CACHED):
        some = floats[start : start + _NUM_CACHED]
        for i in range(np.uint64(len(some))):
            wide = np.float64(some[i])
            total += wide
            squares += wide * wide
        # The compiler vectorizes integers, and not floats.
        with_sign, without = signed[start : start + _NUM_CACHED], unsigned[start : start + _NUM_CACHED]
        for i in range(np.uint64(len(some))):
            least, most = min(least, with_sign[i]), max(most, with_sign[i])
            first, last = min(first, without[i]), max(last, without[i])
    sums[0], sums[1] = total, squares
    ends[0], ends[1], ends[2], ends[3] = least, most, first, last


def _count(pairs: Any, counts: Any) -> Any:
    """Count the leading 16 bits of float32 numbers, two in each element; return the union of the others."""
    low = np.uint64(0)
    # Two tables: a number does not wait until the one before it is counted. One load for both saves a sixth.
    tables = np.zeros((2, len(counts)), np.int32)
    even, odd = tables[0], tables[1]
    for i in range(np.uint64(len(pairs))):
        both = pairs[i]
        even[(both >> np.uint64(16)) & np.uint64(0xFFFF)] += 1
        odd[both >> np.uint64(48)] += 1
        low |= both
    for i in range(len(counts)):
        counts[i] += even[i] + odd[i]
    return (low | low >> np.uint64(32)) & np.uint64(0xFFFF)


def _read_only(numbers: Array) -> Array:
    """Return a view that cannot be written to, for which the loops are compiled."""
    view = numbers.view()
    view.flags.writeable = False
    return view


class Kernels(NamedTuple):
    find: Any
    count: Any

    def add_codes(self, counts: Array, numbers: Array) -> bool:
        # A pair begins at a multiple of 8 bytes.
        first = numbers.__array_interface__["data"][0] % 8 // 4
        last = first + (len(numbers) - first) // 2 * 2
        others = np.concatenate((numbers[:first], numbers[last:])).view(np.uint32)
        np.add.at(counts, others >> 16, 1)
        low = self.count(_read_only(numbers[first:last].view(np.uint64)), counts)
        return not low and not np.any(others & 0xFFFF)

    def walk(self, numbers: Array) -> Walked:
        sums, ends = np.empty(2), np.empty(4, np.int64)
        numbers = _read_only(numbers)
        self.find(numbers, numbers.view(np.int32), numbers.view(np.uint32), sums, ends)
        least, most, first, last = ends.tolist()
        # The bits of negative floats are larger as unsigned integers, and fall as the floats rise.
        bits = [last if least < 0 else first, most if most >= 0 else first]
        low, high = np.array(bits, np.uint32).view(np.float32)
        zeros = int(np.count_nonzero(numbers == 0)) if first == 0 or least == -(2**31) else 0
        return low, high, zeros, *sums.tolist()


@functools.cache
def load() -> Kernels | None:
    try:
        from numba import config, njit  # type: ignore[import-not-found,unused-ignore]  # an extra

        if vars(config).get("DISABLE_JIT"):
            return None
        find = njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})(_find)
        kernels = Kernels(find, njit(nogil=True, cache=True)(_count))
        # Both are compiled here, where an error says that numba cannot be used.
        kernels.walk(np.zeros(1, np.float32))
        kernels.add_codes(np.zeros(2**16, np.int64), np.zeros(1, np.float32))
    except ModuleNotFoundError:
        return None
    except Exception as error:
        _log.warning("numba is not used: %s", str(error).partition("\n")[0])
        return None
    return kernels

"""Loops over numbers, compiled by numba: each walks what the first cache holds, and keeps no other thread waiting.

A sum may be taken in the order that the processor likes best; of as many numbers it is always the same one.

A chunk is told by unsigned numbers: to cut it out counts references, and of signed ones it is asked of each whether it
is counted from the end. Either takes two thirds of the speed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an extra
from numba import njit, types  # type: ignore[import-not-found,unused-ignore]  # an extra
from numba.extending import intrinsic  # type: ignore[import-not-found,unused-ignore]  # an extra

_CHUNK_NBYTES = 2**10
"""What stays in the first cache while one loop after the other walks it."""
_LINE_NBYTES = 64
"""What memory brings at once."""


@njit(nogil=True, cache=True)
def figures(floats: Any, signed: Any, unsigned: Any, minus_zero: Any) -> Any:
    """Return the sum, the sum of squares and the number of zeros of floats, and the ends of their bits.

    `signed` and `unsigned` are those bits as integers, of which the least and the largest come; `minus_zero` are the
    bits of -0.0, the least of all signed ones.
    """
    total, squares, zeros = 0.0, 0.0, 0
    least, most, first, last = signed[0], signed[0], unsigned[0], unsigned[0]
    address, size = floats.ctypes.data, _CHUNK_NBYTES // floats.itemsize
    for start in range(0, len(floats), size):
        end = min(start + size, len(floats))
        # While these are summed up, memory brings what comes third: else a fifth of the time is waiting.
        for line in range(2 * _CHUNK_NBYTES, 3 * _CHUNK_NBYTES, _LINE_NBYTES):
            _prefetch(address + end * floats.itemsize + line)  # type: ignore[call-arg,unused-ignore]
        begin, stop = np.uint64(start), np.uint64(end)
        more, more_squares = _sums(floats, begin, stop)
        low, high, low_bits, high_bits = _ends(signed, unsigned, begin, stop)
        total, squares = total + more, squares + more_squares
        least, most, first, last = min(least, low), max(most, high), min(first, low_bits), max(last, high_bits)
        # The zero of either sign is the least of one of both.
        if low_bits == 0 or low == minus_zero:
            zeros += _num_zeros(floats, begin, stop)
    return total, squares, zeros, least, most, first, last


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _prefetch(_: Any, address: Any) -> Any:
    """Have the line at an address brought, if there is one (https://llvm.org/docs/LangRef.html#llvm-prefetch)."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        # To be read; as near as can be; no code.
        builder.call(function, [builder.inttoptr(arguments[0], pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.intp), generate


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _sums(floats: Any, start: Any, end: Any) -> Any:
    total, squares = 0.0, 0.0
    for i in range(start, end):
        wide = np.float64(floats[i])
        total += wide
        squares += wide * wide
    return total, squares


@njit(nogil=True, cache=True)
def _ends(signed: Any, unsigned: Any, start: Any, end: Any) -> Any:
    least, most, first, last = signed[start], signed[start], unsigned[start], unsigned[start]
    for i in range(start, end):
        least, most = min(least, signed[i]), max(most, signed[i])
        first, last = min(first, unsigned[i]), max(last, unsigned[i])
    return least, most, first, last


@njit(nogil=True, cache=True)
def _num_zeros(floats: Any, start: Any, end: Any) -> Any:
    count = 0
    for i in range(start, end):
        count += floats[i] == 0
    return count


@njit(nogil=True, cache=True)
def count(bits: Any, shift: Any, counts: Any) -> None:
    """Add to `counts` how many of the unsigned integers `bits` have each key: what they are without `shift` bits."""
    for i in range(len(bits)):
        counts[bits[i] >> shift] += 1


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def add_squares(floats: Any, first: Any, size: Any, inner: Any, sums: Any) -> None:
    """Add to `sums` the squares of the floats from number `first` on, of each of `size` channels in turn.

    A channel has `inner` floats in a row, again and again.
    """
    done = 0
    if inner == 1:
        channel = first % size
        while done < len(floats):
            num = min(size - channel, len(floats) - done)
            at, into = np.uint64(done), np.uint64(channel)
            for i in range(np.uint64(num)):
                wide = np.float64(floats[at + i])
                sums[into + i] += wide * wide
            done, channel = done + num, 0
        return
    channel, inside = first % (size * inner) // inner, first % inner
    while done < len(floats):
        num = min(inner - inside, len(floats) - done)
        sums[channel] += _sums(floats, np.uint64(done), np.uint64(done + num))[1]
        done, inside, channel = done + num, 0, (channel + 1) % size

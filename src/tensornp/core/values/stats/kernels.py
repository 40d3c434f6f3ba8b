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

from tensornp.core.memory.blocks import BLOCK_NUMEL
from tensornp.core.values.stats.figures import LARGEST, MAX_CANCELLED, SMALLEST

_CHUNK_NBYTES = 2**10
"""What stays in the first cache while one loop after the other walks it."""
_LINE_NBYTES = 64
"""What memory brings at once."""


@njit(nogil=True, cache=True)
def walk(
    floats: Any, signed: Any, unsigned: Any, normals: Any, sums: Any, is_left: Any, shift: Any, counts: Any
) -> Any:
    """Add up blocks of floats: how many they are, how many zeros, their ends, their sum and that of their squares.

    One of which these do not tell enough is left, and noted in `is_left`, which has a place for each block. Of both
    kinds the keys are counted, unless `counts` is for none. `signed` and `unsigned` are the bits as integers, `normals`
    those of the normal floats next to zero. Returns how many of those that were counted are nearer, and not zero.
    """
    subnormal = 0
    ends = np.empty(2, floats.dtype)
    bits = ends.view(unsigned.dtype)
    for number in range(len(is_left)):
        start, end = number * BLOCK_NUMEL, min((number + 1) * BLOCK_NUMEL, len(floats))
        total, squares, zeros, small, least, most, first, last = _sums_of_block(
            floats, signed, unsigned, normals, start, end, shift, counts
        )
        subnormal += small
        # Of the bits of floats, those of negative ones are the larger as unsigned integers, and fall as these rise.
        bits[0] = bits[1] = first
        if least < 0:
            bits[0] = last
        if most >= 0:
            bits[1] = most
        low, high = np.float64(ends[0]), np.float64(ends[1])
        mean = total / (end - start)
        variance = squares / (end - start) - mean * mean
        if variance * MAX_CANCELLED >= mean * mean and SMALLEST < max(-low, high) < LARGEST:
            sums[0] += end - start
            sums[1] += zeros
            sums[2], sums[3] = min(sums[2], low), max(sums[3], high)
            sums[4] += total
            sums[5] += squares
        else:
            is_left[number] = True
    return subnormal


@njit(nogil=True, cache=True)
def _sums_of_block(
    floats: Any, signed: Any, unsigned: Any, normals: Any, lower: Any, upper: Any, shift: Any, counts: Any
) -> Any:
    """Return of a block both sums, how many are zero, and how many subnormal, and the ends of their bits."""
    total, squares, zeros, small = 0.0, 0.0, 0, 0
    least, most, first, last = signed[lower], signed[lower], unsigned[lower], unsigned[lower]
    address, size = floats.ctypes.data, _CHUNK_NBYTES // floats.itemsize
    for start in range(lower, upper, size):
        end = min(start + size, upper)
        # While these are summed up, memory brings what comes third: else a fifth of the time is waiting.
        for line in range(2 * _CHUNK_NBYTES, 3 * _CHUNK_NBYTES, _LINE_NBYTES):
            _prefetch(address + end * floats.itemsize + line)  # type: ignore[call-arg,unused-ignore]
        begin, stop = np.uint64(start), np.uint64(end)
        more, more_squares = _sums(floats, begin, stop)
        low, high, low_bits, high_bits = _ends(signed, unsigned, begin, stop)
        total, squares = total + more, squares + more_squares
        least, most, first, last = min(least, low), max(most, high), min(first, low_bits), max(last, high_bits)
        # What is nearest to zero, on either side of it, is the least of one of both.
        if low < normals[0] or low_bits < normals[1]:
            found = _num_below(unsigned, begin, stop, unsigned.dtype.type(1))
            zeros += found
            if len(counts):
                small += _num_below(unsigned, begin, stop, normals[1]) - found
        if len(counts):
            count(unsigned, begin, stop, shift, counts)
    return total, squares, zeros, small, least, most, first, last


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
def _num_below(bits: Any, start: Any, end: Any, limit: Any) -> Any:
    """Return how many floats are nearer to zero than one of these bits."""
    kind, count = bits.dtype.type, 0
    for i in range(start, end):
        # Without the sign.
        count += kind(bits[i] + bits[i]) < kind(limit + limit)
    return count


@njit(nogil=True, cache=True)
def count(bits: Any, start: Any, end: Any, shift: Any, counts: Any) -> None:
    """Add to `counts` how many unsigned integers of a chunk have each key: what they are without `shift` bits."""
    for i in range(start, end):
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

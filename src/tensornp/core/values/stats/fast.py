"""Whether numba compiles the loops over many numbers (the extra ``fast``); what it does not do is done by NumPy."""

from __future__ import annotations

import functools
import importlib.util
import logging
from collections.abc import Callable
from threading import Thread
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from tensornp.core.lowlevel.fallback import MAX_REASON
from tensornp.core.memory.blocks import BLOCK_NUMEL

Array = np.ndarray[Any, Any]
_T = TypeVar("_T")
NO_COUNTS = np.zeros(0, np.int64)
"""Where no keys are counted."""
MAX_NBYTES_PLAIN = 2**22
"""Bytes past which the loops are compiled, as many as a card reads unasked: it takes seconds at the first time, later
half of one."""
_SILENT_S = 2.0
TAKES_LONG = "numba compiles the loops over many numbers; it takes some seconds, once"
"""What the log says after so many."""
_BITS: dict[int, tuple[Any, Any, Any]] = {
    4: (np.dtype(np.int32), np.dtype(np.uint32), (np.int32(-(2**31) + 2**23), np.uint32(2**23))),
    8: (np.dtype(np.int64), np.dtype(np.uint64), (np.int64(-(2**63) + 2**52), np.uint64(2**52))),
}
"""By the bytes of a float, the integers of its bits, and those of the normal floats next to zero."""


class Kernels:
    """The compiled loops, as what they do for blocks of numbers."""

    def __init__(self, compiled: ModuleType) -> None:
        self._compiled = compiled

    def walk(self, floats: Array, sums: Array, shift: int = 0, counts: Array = NO_COUNTS) -> tuple[list[int], int]:
        """Add to `sums` how many float32 or float64 there are in blocks, zeros, both ends, the sum, that of squares.

        Adds to `counts`, if there are any, how many have each key: their bits without `shift` of them. Returns the
        numbers of the blocks whose sums do not tell enough, and how many are subnormal of those that were counted.
        """
        signed, unsigned, normals = _BITS[floats.itemsize]
        is_left = np.zeros(-(-len(floats) // BLOCK_NUMEL), np.bool_)
        bits = floats.view(unsigned)
        integers = floats.view(signed), bits, normals
        small = self._compiled.walk(floats, *integers, sums, is_left, bits.dtype.type(shift), counts)
        return np.flatnonzero(is_left).tolist(), small

    def count(self, floats: Array, shift: int, counts: Array) -> int:
        """Add to `counts` how many have each key; return how many are subnormal."""
        return self.walk(floats, np.zeros(6), shift, counts)[1]

    def count_codes(self, codes: Array, counts: Array) -> None:
        """Add to `counts` how many of the codes, unsigned integers, are each."""
        self._compiled.count(codes, np.uint64(0), np.uint64(len(codes)), codes.dtype.type(0), counts)

    def add_squares(self, floats: Array, first: int, size: int, inner: int, sums: Array) -> None:
        """Add to `sums`, of float64, the squares of the channels of float32 numbers, the first of which has a number.

        Each of `size` channels has `inner` numbers in a row.
        """
        self._compiled.add_squares(floats, first, size, inner, sums)


@functools.cache
def load() -> Kernels | None:
    """Return the compiled loops if numba is there, and computes here what it should, else None."""
    return loaded(_kernels)


def is_to_compile(nbytes: int) -> bool:
    """Return whether the statistics of a tensor of so many bytes would have the loops compiled first."""
    return nbytes > MAX_NBYTES_PLAIN and not load.cache_info().currsize and _is_installed()


@functools.cache
def _is_installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def _kernels() -> Kernels:
    from tensornp.core.values.stats import kernels

    found = Kernels(kernels)
    _check(found)
    return found


def loaded(make: Callable[[], _T]) -> _T | None:
    """Return what `make` compiles and tries; None, and a line in the log, where it raises, or numba is not there."""
    found: list[_T | None] = []
    # Ctrl-C comes to another thread: a library whose import it ends half-way is of no use to anybody any more.
    thread = Thread(target=lambda: found.append(_made(make)), name="tensornp: numba", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        _log.warning("numba is not used: %s", error)
        return None
    thread.join(_SILENT_S)
    if thread.is_alive():
        _say_that_it_takes_long()
    thread.join()
    return found[0] if found else None


@functools.cache
def _say_that_it_takes_long() -> None:
    _log.warning(TAKES_LONG)


def _made(make: Callable[[], _T]) -> _T | None:
    try:
        return make() if _is_there() else None
    except BaseException as error:
        _log.warning("numba is not used: %s", str(error).partition("\n")[0][:MAX_REASON])
        return None


@functools.cache
def _is_there() -> bool:
    try:
        import numba  # type: ignore[import-not-found,unused-ignore]

        return not vars(numba.config).get("DISABLE_JIT")
    except BaseException as error:
        # It is an extra; one that is there, and lacks what it needs itself, is told of.
        if getattr(error, "name", "") != "numba" or not isinstance(error, ModuleNotFoundError):
            _log.warning("numba is not used: %s", str(error).partition("\n")[0][:MAX_REASON])
        return False


def _check(loaded: Kernels) -> None:
    """Raise what is wrong if the loops do not compute what they should of a few numbers."""
    # Each is compiled here, where no Ctrl-C comes in between.
    for dtype, shift in (("float32", 24), ("float64", 56)):
        tried = np.arange(-2.0, 10_001.0).astype(dtype) / 8
        sums, counts = np.zeros(6), np.zeros(256, np.int64)
        # Both sums are exact in float64, and in no shorter float.
        expected = [10_003, 1, -0.25, 1250, 10_000 * 10_001 / 16 - 3 / 8, 10_000 * 10_001 * 20_001 / 384 + 5 / 64]
        if loaded.walk(tried, sums, shift, counts) != ([], 0) or sums.tolist() != expected:
            raise ArithmeticError("it does not compute here what it should")
        if (counts != np.bincount(tried.view(f"i{tried.itemsize}") >> shift & 255, minlength=256)).any():
            raise ArithmeticError("it does not count here as it should")
    squares = np.zeros(2)
    for inner in (1, 2):
        loaded.add_squares(np.array([1, 2, 3, 4], np.float32), 1, 2, inner, squares)
    if squares.tolist() != [4 + 16 + 1 + 16, 1 + 9 + 4 + 9]:
        raise ArithmeticError("it does not add up here what it should")
    for dtype in ("uint8", "uint16"):
        counts = np.zeros(4, np.int64)
        loaded.count_codes(np.array([0, 2, 3, 3], dtype), counts)
        if counts.tolist() != [1, 0, 1, 2]:
            raise ArithmeticError("it does not count here as it should")


_log = logging.getLogger("tensornp")

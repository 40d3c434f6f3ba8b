"""Where elements lie in memory, by addresses alone, and how two such sets of bytes relate.

torch is not imported here: an extent is a handful of numbers, so devices that this machine lacks can be tested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Relation = Literal[
    "same object", "same elements", "overlapping", "same storage", "reinterpreted", "stale", "may overlap"
]
RELATIONS: tuple[Relation, ...] = (
    "same object", "same elements", "reinterpreted", "overlapping", "may overlap", "same storage", "stale",
)  # fmt: skip
"""From the closest to the loosest."""
MAX_WORK = 100_000
"""Candidates that `numpy.shares_memory` tries at most: some milliseconds; exactness can take exponential time."""
MAX_LISTED = 100_000
"""Bytes of a set that are listed at most, where two sets cannot be compared by their strides."""
_MAX_DIMS = 32
Runs = tuple[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class Extent:
    """The elements of a tensor or an array, as addresses.

    `strides` count bytes and may be negative. `meaning` tells what the bytes mean: the dtype, and a lazy conjugate or
    negative, so that equal bytes of two meanings are not called the same elements.
    """

    device: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    meaning: str

    @property
    def is_empty(self) -> bool:
        """Whether there is no byte at all."""
        return not self.address or not self.itemsize or 0 in self.shape

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest address, and the address after the highest byte."""
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        backwards = sum([step for step in steps if step < 0])
        return self.address + backwards, self.address + sum(steps) - backwards + self.itemsize


def relation_of(a: Extent, b: Extent) -> Relation | None:
    """Return how the elements of `a` and `b` relate, or None where no byte belongs to both.

    Exact for every layout, except where `numpy.shares_memory` gives up after `MAX_WORK`: then "may overlap".
    """
    if a.device != b.device or a.is_empty or b.is_empty:
        return None
    (a_low, a_high), (b_low, b_high) = a.bounds, b.bounds
    if a_low >= b_high or b_low >= a_high:
        return None
    if _same_places(a, b):
        return "same elements" if a.meaning == b.meaning else "reinterpreted"
    # A span without gaps on both sides is the ordinary case, and needs no search.
    runs_a, runs_b = _runs(a), _runs(b)
    if _same_bytes(runs_a, runs_b):
        return "reinterpreted"
    if len(runs_a[1]) == 1 and len(runs_b[1]) == 1 and runs_a[1][0][0] == runs_b[1][0][0] == 1:
        return "overlapping"
    try:
        shares = np.shares_memory(_array_over(runs_a), _array_over(runs_b), max_work=MAX_WORK)  # type: ignore[arg-type]  # stubs too narrow
    except (np.exceptions.TooHardError, ValueError, OverflowError):
        return "may overlap"
    return "overlapping" if shares else None


def shared_bounds(a: Extent, b: Extent) -> tuple[int, int]:
    """Return the addresses between which both have elements."""
    (a_low, a_high), (b_low, b_high) = a.bounds, b.bounds
    return max(a_low, b_low), min(a_high, b_high)


def dense_span(extent: Extent) -> tuple[int, int] | None:
    """Return where the bytes start and how many they are, if there is no gap between them; else None."""
    start, pairs = _runs(extent)
    return (start, pairs[0][1]) if len(pairs) == 1 and pairs[0][0] == 1 else None


def _same_places(a: Extent, b: Extent) -> bool:
    """Return whether each index addresses the same element in both."""
    if a.address != b.address or a.itemsize != b.itemsize or a.shape != b.shape:
        return False
    return all(s == r or n == 1 for n, s, r in zip(a.shape, a.strides, b.strides, strict=True))


def _runs(extent: Extent) -> Runs:
    """Return the set of bytes in a short form: where it starts, and (step, count) pairs whose sums it consists of.

    Negative strides are turned round, and two steps are merged where together they count like one: ``count`` multiples
    of ``step``, and up to that many of them as the next larger step. Equal forms are equal sets.
    """
    start = extent.bounds[0]
    pairs = sorted((abs(s), n) for n, s in zip(extent.shape, extent.strides, strict=True) if n > 1 and s)
    merged = [(1, extent.itemsize)]
    for step, count in pairs:
        for i, (smaller, n) in enumerate(merged):
            if step % smaller == 0 and step // smaller <= n:
                merged[i] = (smaller, n + step // smaller * (count - 1))
                break
        else:
            merged.append((step, count))
    # A merge may have made room for another one.
    return _runs_again(start, merged) if len(merged) > 1 else (start, tuple(merged))


def _runs_again(start: int, pairs: list[tuple[int, int]]) -> Runs:
    for i, (smaller, n) in enumerate(pairs):
        for j in range(i + 1, len(pairs)):
            step, count = pairs[j]
            if step % smaller == 0 and step // smaller <= n:
                rest = [pair for k, pair in enumerate(pairs) if k not in (i, j)]
                return _runs_again(start, sorted([*rest, (smaller, n + step // smaller * (count - 1))]))
    return start, tuple(pair for pair in pairs if pair[1] > 1) or ((1, 1),)


def _same_bytes(a: Runs, b: Runs) -> bool:
    """Return whether two sets of bytes are equal; where that is too much to tell, they are said to differ."""
    if a == b:
        return True
    if a[0] != b[0] or _last(a) != _last(b) or max(_count(a), _count(b)) > MAX_LISTED:
        return False
    return bool(np.array_equal(_listed(a), _listed(b)))


def _count(runs: Runs) -> int:
    return math.prod(count for _, count in runs[1])


def _last(runs: Runs) -> int:
    return runs[0] + sum(step * (count - 1) for step, count in runs[1])


def _listed(runs: Runs) -> np.ndarray[Any, Any]:
    """Return every offset of the set, in order."""
    offsets = np.zeros(1, dtype=np.int64)
    for step, count in runs[1]:
        offsets = (offsets[:, None] + step * np.arange(count)).ravel()
    return np.unique(offsets)


class _Memory:
    """What NumPy makes an array over; nothing ever reads through it."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.__array_interface__ = {
            "data": (address, True), "shape": shape, "strides": strides, "typestr": "|u1", "version": 3,
        }  # fmt: skip


def _array_over(runs: Runs) -> np.ndarray[Any, Any]:
    start, pairs = runs
    if len(pairs) > _MAX_DIMS:
        raise ValueError("more dimensions than NumPy has")
    return np.asarray(_Memory(start, tuple(n for _, n in pairs), tuple(s for s, _ in pairs)))


def span_array(low: int, high: int) -> np.ndarray[Any, Any]:
    """Return a stand-in for the bytes from `low` to `high`, for `numpy.may_share_memory`; it must never be read."""
    return np.asarray(_Memory(low, (high - low,), (1,)))

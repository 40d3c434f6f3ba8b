"""Compare sets of addresses, without torch: devices that this machine lacks can be tested."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

Relation = Literal[
    "same object", "same elements", "reinterpreted", "overlapping", "may overlap", "same storage", "stale"
]
"""From the closest to the loosest."""
RELATIONS: tuple[Relation, ...] = get_args(Relation)
MAX_WORK = 100_000
"""Candidates that `numpy.shares_memory` tries at most: some milliseconds; an exact answer may take exponential time."""
Span = tuple[str, int, int]
"""A device, the address of the first byte and that after the last one."""


class Extent(NamedTuple):
    """The elements of a tensor or an array, as addresses.

    `strides` count bytes. `meaning` is the dtype with its lazy bits: equal bytes of two meanings are not the same
    elements.
    """

    device: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    meaning: str

    @property
    def is_empty(self) -> bool:
        return not self.address or not self.itemsize or 0 in self.shape

    @property
    def bounds(self) -> tuple[int, int]:
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        backwards = sum([step for step in steps if step < 0])
        return self.address + backwards, self.address + sum(steps) - backwards + self.itemsize

    @property
    def steps(self) -> list[tuple[int, int]]:
        """The step and the number of elements along each dimension with several, by ascending step."""
        return sorted((abs(s), n) for n, s in zip(self.shape, self.strides, strict=True) if n > 1 and s)

    @property
    def has_no_gaps(self) -> bool:
        """Whether the elements follow each other in some order of the dimensions."""
        end = self.itemsize
        for step, size in self.steps:
            if step > end:
                return False
            end += step * (size - 1)
        return True


def relation_of(a: Extent, b: Extent) -> Relation | None:
    """Return the relation of the elements of `a` and `b`; None if they have no byte in common."""
    if a.device != b.device or a.is_empty or b.is_empty:
        return None
    (a_low, a_high), (b_low, b_high) = a.bounds, b.bounds
    if a_low >= b_high or b_low >= a_high:
        return None
    if (a.address, a.itemsize, a.shape) == (b.address, b.itemsize, b.shape) and all(
        s == r or n == 1 for n, s, r in zip(a.shape, a.strides, b.strides, strict=True)
    ):
        return "same elements" if a.meaning == b.meaning else "reinterpreted"
    # Spans without gaps are the ordinary case, and need no search.
    if (a_low, a.itemsize, a.steps) == (b_low, b.itemsize, b.steps):
        return "reinterpreted"
    if a.has_no_gaps and b.has_no_gaps:
        return "reinterpreted" if (a_low, a_high) == (b_low, b_high) else "overlapping"
    try:
        shares = np.shares_memory(_array_over(a), _array_over(b), max_work=MAX_WORK)  # type: ignore[arg-type]  # stubs too narrow
    except (np.exceptions.TooHardError, ValueError, OverflowError):
        return "may overlap"
    return "overlapping" if shares else None


def _array_over(extent: Extent) -> np.ndarray[Any, Any]:
    """Return the bytes of an extent as an array; nothing reads through it."""
    interface = {
        "data": (extent.address, True), "shape": (*extent.shape, extent.itemsize), "strides": (*extent.strides, 1),
        "typestr": "|u1", "version": 3,
    }  # fmt: skip
    return np.asarray(SimpleNamespace(__array_interface__=interface))


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for device, low, high in sorted(set(spans)):
        if found and found[-1][0] == device and low < found[-1][2]:
            found[-1] = (device, found[-1][1], max(high, found[-1][2]))
        else:
            found.append((device, low, high))
    return found


def nbytes_by_device(spans: Iterable[Span]) -> dict[str, int]:
    covered: dict[str, int] = defaultdict(int)
    for device, low, high in merge_spans(spans):
        covered[device] += high - low
    return covered


class Piece(NamedTuple):
    place: str
    low: int
    high: int
    nbytes: int
    numel: int


def counted_once(pieces: Iterable[Piece]) -> tuple[int, int]:
    """Return the elements and the bytes of pieces that may lie over each other.

    A piece with gaps, such as a column, counts in full unless it lies in one without: two may be columns side by side.
    """
    elements = nbytes = 0
    covered: dict[str, list[tuple[int, int]]] = {}
    with_gaps = []
    for one in sorted(set(pieces)):
        place, low, high, own, numel = one
        if own != high - low:
            with_gaps.append(one)
            continue
        ranges = covered.setdefault(place, [])
        end = ranges[-1][1] if ranges else 0
        if ranges and low <= end:
            new = max(high - end, 0)
            ranges[-1] = ranges[-1][0], max(high, end)
        else:
            new = own
            ranges.append((low, high))
        elements, nbytes = elements + numel * new // max(own, 1), nbytes + new
    for place, low, high, own, numel in with_gaps:
        ranges = covered.get(place, [])
        at = bisect_right(ranges, low, key=lambda span: span[0]) - 1
        if at < 0 or ranges[at][1] < high:
            elements, nbytes = elements + numel, nbytes + own
    return elements, nbytes

"""Names that share memory, put together by the addresses of their storages."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from tensornp.core.memory.footprint import Span
    from tensornp.core.tensor.paths import Kind, Path

Holding = Literal["name", "history", "traceback"]
"""What keeps an object: a name of the user's, IPython's history, or the frames of the last traceback."""


@dataclass(slots=True)
class Found:
    """One name that the search has met, and the object, which is held for as long as the survey is."""

    obj: Any
    kind: Kind
    path: Path
    holding: Holding
    spans: tuple[Span, ...]


@dataclass(slots=True)
class Group:
    """Names whose memory meets, before a table is made of them."""

    found: list[Found]
    spans: list[Span]
    nbytes: int = 0

    def nbytes_by_device(self) -> dict[str, int]:
        """Return the bytes of its storages on each device, each byte once."""
        return merged(self.spans)


def history_entry(path: Path) -> str:
    """Return the entry of IPython's history through which `path` goes: "Out[3]"."""
    while path[0] is not None and path[0][0] is not None:
        path = path[0]
    from tensornp.core.tensor.paths import expression_of

    return expression_of(path)


def grouped(found: list[Found]) -> list[Group]:
    """Return the names in groups whose spans meet, directly or through others; one without memory stands alone."""
    spans = sorted((span, i) for i, item in enumerate(found) for span in item.spans)
    leaders = list(range(len(found)))

    def leader(i: int) -> int:
        while leaders[i] != i:
            leaders[i] = leaders[leaders[i]]
            i = leaders[i]
        return i

    at: tuple[str, int] = ("", 0)
    last = -1
    for (device, low, high), i in spans:
        if last >= 0 and device == at[0] and low < at[1]:
            leaders[leader(i)] = leader(last)
            at = (device, max(at[1], high))
        else:
            at = (device, high)
        last = i
    same: dict[int, int] = {}
    for i, item in enumerate(found):
        # The same object without memory (a meta tensor) under two names is one.
        if not item.spans:
            leaders[leader(i)] = leader(same.setdefault(id(item.obj), i))
    groups: dict[int, Group] = {}
    for i, item in enumerate(found):
        group = groups.setdefault(leader(i), Group([], []))
        group.found.append(item)
        group.spans += item.spans
    for group in groups.values():
        group.nbytes = sum(merged(group.spans).values())
    return list(groups.values())


def merged(spans: list[Span]) -> dict[str, int]:
    """Return the bytes that the spans cover on each device, each byte once."""
    covered: dict[str, int] = defaultdict(int)
    at: tuple[str, int] = ("", 0)
    for device, low, high in sorted(set(spans)):
        start = max(low, at[1]) if device == at[0] else low
        covered[device] += max(high - start, 0)
        at = (device, max(high, at[1]) if device == at[0] else high)
    return covered


def num_apart(spans: list[Span]) -> int:
    """Return how many storages and buffers the spans are of: those that meet are one."""
    found, at = 0, ("", 0)
    for device, low, high in sorted(set(spans)):
        is_next = device != at[0] or low >= at[1]
        found += is_next
        at = (device, high if is_next else max(high, at[1]))
    return found


class Piece(NamedTuple):
    """A range of bytes, and how many bytes and elements in it are those of a tensor, an array or a weight."""

    place: str
    low: int
    high: int
    nbytes: int
    numel: int


def counted_once(pieces: Iterable[Piece]) -> tuple[int, int]:
    """Return the elements and the bytes of pieces that may lie over each other.

    Of those without gaps, what several have counts once. One with gaps, as a column has, counts in full unless it lies
    in one without: two of them may be columns side by side.
    """
    elements = nbytes = 0
    covered: dict[str, list[tuple[int, int]]] = {}
    every = sorted(set(pieces))
    with_gaps = []
    for one in every:
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

"""Names that share memory, put together by the addresses of their storages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

from tensornp.core.memory.footprint import Span
from tensornp.core.tensor.paths import Kind, Path, expression_of

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

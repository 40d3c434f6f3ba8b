"""Group the tensors and arrays of a namespace by the memory that they share, and count each byte once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tensornp.core.lowlevel import modes
from tensornp.core.memory.extents import Span, nbytes_by_device
from tensornp.core.memory.footprint import footprint_of
from tensornp.core.namespace.search import Search, history_name
from tensornp.core.tensor.paths import Kind, Path, expression_of, first_step

RESULTS = ("Out[…]", "results")


@dataclass(slots=True, eq=False)
class Found:
    """A tensor or an array; `owner` is the variable that reaches it with its class, or `RESULTS`."""

    obj: Any
    kind: Kind
    path: Path
    spans: tuple[Span, ...]
    name: str = ""
    owner: tuple[str, str] = RESULTS

    @property
    def is_result(self) -> bool:
        return self.owner == RESULTS


@dataclass(slots=True)
class Group:
    found: list[Found]
    spans: list[Span]
    nbytes: int = 0


class Survey:
    """The tensors and arrays of a namespace, grouped by memory; it holds all of them, so do not keep it.

    `stopped` says why some may be missing.
    """

    def __init__(self, namespace: Mapping[str, Any], max_seconds: float) -> None:
        found: list[Found] = []

        def visit(obj: Any, kind: Kind, path: Path) -> None:
            spans: tuple[Span, ...] = ()
            # The row of an object that raises says the little that is known.
            with suppress(Exception):
                spans = tuple(footprint_of(obj)[1])
            found.append(Found(obj, kind, path, spans))

        with modes.outside_modes():
            search = Search(namespace, max_seconds, visit)
        history = history_name(namespace)
        for one in found:
            one.name, root = search.name(one.path), first_step(one.path)
            if root[1] != history:
                one.owner = expression_of(root), type(namespace.get(root[1])).__name__
        self.stopped = "; ".join(filter(None, (search.stopped, search.left_out)))
        self.groups = grouped(found)


def history_entry(path: Path) -> str:
    """Return the entry of IPython's history through which `path` goes: "Out[3]"."""
    while path[0] is not None and path[0][0] is not None:
        path = path[0]
    return expression_of(path)


def grouped(found: list[Found]) -> list[Group]:
    spans = sorted((span, i) for i, item in enumerate(found) for span in item.spans)
    leaders = list(range(len(found)))

    def leader(i: int) -> int:
        while leaders[i] != i:
            leaders[i] = leaders[leaders[i]]
            i = leaders[i]
        return i

    at, last = ("", 0), -1
    for (device, low, high), i in spans:
        if last >= 0 and device == at[0] and low < at[1]:
            leaders[leader(i)] = leader(last)
            at = (device, max(at[1], high))
        else:
            at = (device, high)
        last = i
    same: dict[int, int] = {}
    groups: dict[int, Group] = {}
    for i, item in enumerate(found):
        # The same object without memory (a meta tensor) under two names is one.
        if not item.spans:
            leaders[leader(i)] = leader(same.setdefault(id(item.obj), i))
        group = groups.setdefault(leader(i), Group([], []))
        group.found.append(item)
        group.spans += item.spans
    for group in groups.values():
        group.nbytes = sum(nbytes_by_device(group.spans).values())
    return list(groups.values())

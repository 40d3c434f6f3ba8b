"""Group the tensors and arrays of a namespace by the memory that they share, and count each byte once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tensornp.core.lowlevel import modes
from tensornp.core.memory.extents import Span, merge_spans, nbytes_by_device
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
    merged = merge_spans([span for item in found for span in item.spans])
    groups: dict[Any, Group] = {}
    for item in found:
        spans = [merged[bisect_right(merged, (device, low, 2**64)) - 1] for device, low, _ in item.spans]
        # The same object without memory (a meta tensor) under two names is one.
        first, *others = spans or [("", id(item.obj), 0)]
        group = groups.setdefault(first, Group([], []))
        for place in others:
            # A sparse tensor joins those that share one of its parts.
            other = groups.setdefault(place, group)
            if other is not group:
                group.found, group.spans = other.found + group.found, other.spans + group.spans
                groups.update(dict.fromkeys([key for key, one in groups.items() if one is other], group))
        group.found.append(item)
        group.spans += item.spans
    every = list({id(group): group for group in groups.values()}.values())
    for group in every:
        group.nbytes = sum(nbytes_by_device(group.spans).values())
    return every

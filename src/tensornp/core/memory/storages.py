"""Group the tensors and arrays of a namespace by the memory that they share, and count each byte once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT
from tensornp.core.memory.aliases import stopped_text
from tensornp.core.memory.extents import Span, nbytes_by_device
from tensornp.core.memory.footprint import footprint_of
from tensornp.core.namespace.search import Search, Visit, history_name
from tensornp.core.tensor.paths import Kind, Path, expression_of, first_step

Holding = Literal["name", "history"]
"""The holder of an object: a name of the user, or IPython's history."""


@dataclass(slots=True, eq=False)
class Found:
    obj: Any
    kind: Kind
    path: Path
    holding: Holding
    spans: tuple[Span, ...]


@dataclass(slots=True)
class Group:
    found: list[Found]
    spans: list[Span]
    nbytes: int = 0


class Survey:
    """The tensors and arrays of a namespace, grouped by memory; it holds all of them, so do not keep it."""

    def __init__(self, namespace: Mapping[str, Any], max_seconds: float) -> None:
        self._names = namespace
        self._keys: dict[int, Path] = {}
        self._history = history_name(namespace)
        found: list[Found] = []
        with modes.outside_modes():
            search = Search(namespace, max_seconds, self._collect(found))
        self.has_all_names = search.is_complete and not search.left_out
        stopped = "" if search.is_complete else stopped_text(search.num_names)
        left_out = NOT_LOOKED_AT if search.left_out else ""
        self.stopped = "; ".join(filter(None, (stopped, left_out)))
        self.groups = grouped(found)

    def _collect(self, found: list[Found]) -> Visit:
        def visit(obj: Any, kind: Kind, path: Path) -> None:
            if kind == "parameter":
                self._keys.setdefault(id(obj), path)
            try:
                spans = tuple(footprint_of(obj)[1])
            except Exception:
                # Its row says the little that is known.
                spans = ()
            holding: Holding = "history" if first_step(path)[1] == self._history else "name"
            found.append(Found(obj, kind, path, holding, spans))

        return visit

    def name(self, found: Found) -> str:
        return expression_of(found.path, self._keys)

    def owner(self, found: Found) -> tuple[str, str]:
        """Return the variable that reaches an object, and its class; IPython's have a word."""
        if found.holding == "history":
            return "Out[…]", "results"
        name = first_step(found.path)[1]
        return expression_of(first_step(found.path)), type(self._names.get(name)).__name__


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

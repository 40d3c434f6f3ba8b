"""Find the names that see the bytes of a tensor, by comparing addresses."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from torch.multiprocessing.reductions import StorageWeakRef

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import an_instance, is_array, is_tensor, refused
from tensornp.core.lowlevel.own_display import display_of, html_of
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.memory.extents import RELATIONS, Relation, Span, relation_of
from tensornp.core.memory.footprint import footprint_of, origin_of, storage_of
from tensornp.core.namespace.caller import names_of_caller
from tensornp.core.namespace.search import Search
from tensornp.core.tensor.paths import Kind, Path
from tensornp.core.tensor.stand_ins import stand_in_of, stood_for
from tensornp.errors import BadRequestError, NotATensorError

MAX_SECONDS = 1.0
WRITTEN = ("same object", "same elements", "reinterpreted", "overlapping", "may overlap")
"""The relations in which one side sees a write to the other, or may see it."""


@dataclass(frozen=True, slots=True)
class Alias:
    """A name that reaches the bytes of a tensor, or did so before.

    Attributes
    ----------
    name, kind : str
        An expression such as ``model.fc.weight``; "tensor", "array", "parameter", "buffer" or "grad".
    relation : str
        "same object"; "same elements" (each index addresses the same element); "reinterpreted" (the same bytes through
        other strides, another dtype or a lazy conjugate); "overlapping" (some bytes belong to both); "may overlap" (too
        hard to tell in bounded time); "same storage" (disjoint views of it); "stale" (seen sharing before, and one of
        them has other memory now).
    """

    name: str
    kind: Kind
    relation: Relation


class Aliases(list[Alias]):
    """A list of `Alias`, the closest first; `left_out` says why gradients were not read."""

    def __init__(self, found: list[Alias], stopped: str = "", left_out: str = "") -> None:
        super().__init__(found)
        self.stopped, self.left_out = stopped, left_out
        self.is_complete = not stopped

    _display_, _repr_html_ = display_of, html_of

    def __str__(self) -> str:
        width = max((len(alias.name) for alias in self), default=0)
        lines = [f"{alias.name:<{width}}  {alias.relation:<13}  {alias.kind}" for alias in self]
        return "\n".join(filter(None, [*lines, self.remark]))

    @property
    def remark(self) -> str:
        said = "\n".join(filter(None, (self.stopped, self.left_out)))
        return said or ("" if self else "nothing else sees these bytes")


@never_compiled
def aliases(obj: Any, namespace: Mapping[str, Any] | None = None) -> Aliases:
    """List the aliases of a tensor or an array, the closest first.

    Follows the names: attributes, modules with their parameters, buffers and gradients, optimizer states,
    containers, IPython's ``Out``, NumPy arrays over any chain of bases. No property of any object is
    called, no value is read, nothing changes. A name of `obj` itself is listed as "same object".

    Parameters
    ----------
    obj : torch.Tensor, numpy.ndarray, or an object that stands for one
    namespace : mapping of str to object, optional
        The names that the caller sees by default.

    Raises
    ------
    NotATensorError
        If `obj` is neither a tensor nor an array.

    Notes
    -----
    Costs about ten microseconds for each tensor or array. After a second the search stops, and ``.is_complete`` of the
    result is False. Overlap is exact; if an exact answer could take exponential time, the answer is "may overlap" after
    some milliseconds. Nobody has seen memory before, so nothing is "stale".
    """
    if not is_tensor(obj) and stand_in_of(obj) is not None:
        with modes.outside_modes():
            obj = stood_for(obj)
    if not (is_tensor(obj) or is_array(obj)):
        raise NotATensorError(f"aliases takes a tensor or an array, not {refused(obj)}")
    if namespace is None:
        namespace = names_of_caller(sys._getframe())
    if not isinstance(namespace, Mapping):
        raise BadRequestError(f"namespace must be a mapping of names to objects, got {an_instance(namespace)}")
    return find_aliases(obj, namespace)[0]


class SeenAliases:
    """Arrays and storages that were seen sharing the memory of a tensor; none is kept alive."""

    __slots__ = ("_arrays", "_storages")

    def __init__(self) -> None:
        self._arrays: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._storages: dict[int, StorageWeakRef] = {}

    def note(self, other: Any) -> None:
        if type(other) is np.ndarray:
            self._arrays[id(other)] = other
        elif is_tensor(other):
            storage = storage_of(other)
            self._storages.setdefault(storage._cdata, StorageWeakRef(storage))

    def __contains__(self, other: object) -> bool:
        if type(other) is np.ndarray:
            return self._arrays.get(id(other)) is other
        return is_tensor(other) and other.numel() > 0 and storage_of(other)._cdata in self._storages

    def living(self) -> SeenAliases:
        made = SeenAliases()
        made._arrays = self._arrays.copy()
        made._storages = {key: one for key, one in self._storages.items() if not one.expired()}
        return made


@modes.outside_modes
def find_aliases(
    obj: Any, namespace: Mapping[str, Any], max_seconds: float = MAX_SECONDS, seen: SeenAliases | None = None
) -> tuple[Aliases, Search]:
    """Return the aliases of a tensor or an array, and the search; `seen` has former aliases."""
    hits: list[tuple[Relation, Path, Kind]] = []
    target = Target(obj)

    def visit(other: Any, kind: Kind, path: Path) -> None:
        try:
            relation = target.compare(other)
            if relation is None and seen is not None and other in seen:
                relation = "stale"
            elif seen is not None and relation not in (None, "same object"):
                seen.note(other)
        except Exception:
            # An unreadable object has no known address.
            return
        if relation is not None:
            hits.append((relation, path, kind))

    searched = Search(namespace, max_seconds, visit)
    hits.sort(key=lambda hit: RELATIONS.index(hit[0]))
    found = [Alias(searched.name(path), kind, relation) for relation, path, kind in hits]
    return Aliases(found, searched.stopped, searched.left_out), searched


class Target:
    def __init__(self, obj: Any) -> None:
        self._obj = obj
        self._extents, self._spans = footprint_of(obj)
        self._low, self._high = _ends_of(self._spans)
        self._is_lazy = is_tensor(obj) and torch_private.is_lazily_copied(obj)

    def compare(self, other: Any) -> Relation | None:
        if other is self._obj:
            return "same object"
        if is_tensor(other):
            try:
                low = torch_private.storage_address(other)
                high = low + storage_of(other).nbytes()
            except (RuntimeError, NotImplementedError):
                low = 0
            if not low:
                # Sparse layouts and wrappers consist of parts that lie anywhere.
                low, high = _ends_of(footprint_of(other)[1])
        else:
            (low, high), _ = origin_of(other)
        if low >= self._high or high <= self._low:
            return None
        if self._is_lazy or (is_tensor(other) and torch_private.is_lazily_copied(other)):
            # The first write makes memory for all views of one lazy copy, and for no other.
            both = [storage_of(one)._cdata for one in (other, self._obj) if is_tensor(one)]
            if len(both) < 2 or both[0] != both[1]:
                return None
        extents, spans = footprint_of(other)
        found = {relation_of(mine, extent) for mine in self._extents for extent in extents} - {None}
        if found:
            # One of several parts is not the same as the whole.
            is_part = (len(self._extents) > 1 or len(extents) > 1) and found != {"may overlap"}
            return "overlapping" if is_part else found.pop()
        is_near = any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for a, b in product(self._spans, spans))
        return "same storage" if is_near and extents and self._extents else None


def _ends_of(spans: list[Span]) -> tuple[int, int]:
    return min(map(itemgetter(1), spans), default=0), max(map(itemgetter(2), spans), default=0)

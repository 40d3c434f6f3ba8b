"""Who else sees the bytes of a tensor: measured by address among all that a namespace reaches, and never deduced."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tensornp.core import torch_private
from tensornp.core.apart import quiet
from tensornp.core.arrays import array_over, extent_of_array, has_left, origin_of
from tensornp.core.dtypes import name_of as dtype_name
from tensornp.core.extents import Extent, Relation, relation_of, shared_bounds, span_array
from tensornp.core.facts import TensorInfo
from tensornp.core.holding import STORAGES, held_tensor, parts_of, tensor_of
from tensornp.core.info import inspect
from tensornp.core.instances import own_attributes
from tensornp.core.search import Kind, Path, Search, name_of
from tensornp.errors import NotATensorError

RELATIONS: tuple[Relation, ...] = (
    "same object", "same elements", "reinterpreted", "overlapping", "may overlap", "same storage", "stale",
)  # fmt: skip
"""From the closest to the loosest."""
MAX_SECONDS = 1.0
DANGLING = "its memory was given back when the storage moved: do not read or write it"
OUTDATED = "it keeps the memory that the storage has left"


@dataclass(frozen=True, slots=True)
class Alias:
    """One name that reaches the bytes of a tensor, or did so once.

    Attributes
    ----------
    name : str
        The expression that reaches it: ``b``, ``model.fc.weight``, ``Out[3]``.
    kind : str
        "tensor", "array", "parameter", "buffer" or "grad".
    relation : str
        "same object"; "same elements" (each index addresses the same element); "reinterpreted" (the same bytes through
        other strides, another dtype or a lazy conjugate); "overlapping" (some bytes belong to both); "may overlap" (too
        hard to tell in bounded time); "same storage" (disjoint views of it); "stale" (shared memory once, and the
        storage of one of them has moved since).
    byte_range : tuple of int, or None
        Between which bytes, counted from the tensor's first, both have elements; None where no byte is shared.
    note : str
        A sentence where more must be known.
    """

    name: str
    kind: Kind
    relation: Relation
    byte_range: tuple[int, int] | None = None
    note: str = ""


_Comparison = tuple[Relation | None, tuple[int, int] | None, str]
_layout_slot: Any = torch.Tensor.layout
_device_slot: Any = torch.Tensor.device
_UNRELATED: _Comparison = (None, None, "")


class Aliases(list[Alias]):
    """A list of `Alias`, the closest first, which says how far the search came.

    Attributes
    ----------
    num_names : int
        Objects that were looked at.
    is_complete : bool
        Whether that was all that the namespace reaches.
    """

    def __init__(self, found: list[Alias], num_names: int, is_complete: bool) -> None:
        super().__init__(found)
        self.num_names = num_names
        self.is_complete = is_complete

    def __str__(self) -> str:
        width = max((len(alias.name) for alias in self), default=0)
        lines = [f"{alias.name:<{width}}  {alias.relation}  ({alias.kind})" for alias in self]
        lines += [] if self.is_complete else [stopped_text(self.num_names)]
        return "\n".join(lines) or "nothing else sees these bytes"


def stopped_text(num_names: int) -> str:
    """Return how a search says that it did not look everywhere."""
    return f"search stopped at {num_names:,} names"


@torch_private.never_compiled
def aliases(obj: Any, namespace: Mapping[str, Any] | None = None, *, max_seconds: float = MAX_SECONDS) -> Aliases:
    """Return who else sees the bytes of a tensor or an array: a list of `Alias`, the closest first.

    Looks at what the names reach: attributes, modules with their parameters, buffers and gradients, optimizer states,
    containers, IPython's ``Out``, NumPy arrays over any chain of bases, memoryviews. No property of any object is
    called, no value is read, nothing changes. A name of `obj` itself is listed as "same object".

    Parameters
    ----------
    obj : torch.Tensor or numpy.ndarray
    namespace : mapping of str to object, optional
        By default, the names that the caller sees.
    max_seconds : float
        After which the search stops; ``.is_complete`` of the result then is False.

    Raises
    ------
    NotATensorError
        If `obj` is neither a tensor nor an array.

    Notes
    -----
    Costs about a microsecond for each tensor or array. Whether two views overlap is exact; where that could take
    exponential time, the answer is "may overlap" after some milliseconds.
    """
    if not isinstance(obj, (torch.Tensor, np.ndarray, *STORAGES)):
        raise NotATensorError(f"aliases takes a tensor or an array, not {type(obj).__name__!r}")
    if namespace is None:
        frame = sys._getframe(1)
        namespace = {**frame.f_globals, **frame.f_locals}
    return find_aliases([obj], Search(namespace, max_seconds))[0]


def find_aliases(objs: list[Any], search: Search, former: dict[int, Any] | None = None) -> list[Aliases]:
    """Return the same for each of `objs`, from one search.

    `former` holds weak references, by identity, to arrays that have shared memory with the first of `objs`; those that
    do so now are added.
    """
    found: list[list[tuple[Path, Kind, Relation, tuple[int, int] | None, str]]] = [[] for _ in objs]
    keys: dict[int, Path] = {}
    with torch_private.undisturbed():
        targets = list(zip(map(_Target, objs), found, strict=True))
        for other, kind, path in search:
            if kind == "parameter":
                keys.setdefault(id(other), path)
            for target, hits in targets:
                try:
                    relation, bounds, note = target.compare(other)
                except Exception:
                    # What cannot be read has no address that is known.
                    continue
                if relation is not None:
                    hits.append((path, kind, relation, bounds, note))
                    if former is not None and kind == "array" and hits is found[0] and relation != "stale":
                        former[id(other)] = weakref.ref(other)
                elif former and hits is found[0] and id(other) in former and former[id(other)]() is other:
                    hits.append((path, kind, "stale", None, OUTDATED))
    return [_listed(hits, keys, search) for hits in found]


def _listed(hits: list[Any], keys: Mapping[int, Path], search: Search) -> Aliases:
    hits.sort(key=lambda hit: RELATIONS.index(hit[2]))
    listed = [Alias(name_of(path, keys), kind, how, where, note) for path, kind, how, where, note in hits]
    return Aliases(listed, search.num_names, search.is_complete)


class _Target:
    """The bytes of one tensor or array, which others are compared with."""

    def __init__(self, obj: Any) -> None:
        self._obj = obj
        self._extents = extents_of(obj)
        self._spans = _spans_of(obj, self._extents)
        self._low = min((low for low, _ in self._spans), default=0)
        self._high = max((high for _, high in self._spans), default=0)
        is_host = bool(self._extents) and self._extents[0].device == "cpu"
        self._probe = span_array(self._low, self._high) if is_host and self._high else None
        # The tensor whose version counter tells the kin: that of an array is under it.
        self._kin: Any = obj if isinstance(obj, torch.Tensor) else _tensor_under(obj)
        self._counter = torch_private.version_counter_of(self._kin) if self._kin is not None else 0
        self._is_lazy = isinstance(obj, torch.Tensor) and torch_private.is_lazily_copied(obj)

    def compare(self, other: Any) -> _Comparison:
        """Return how `other` relates, between which bytes, and a note; quickly for the many that do not."""
        if other is self._obj:
            return "same object", None, ""
        if isinstance(other, torch.Tensor):
            return self._compare_tensor(other)
        if isinstance(other, STORAGES):
            return self._compare_tensor(tensor_of(other))
        return self._compare_array(array_over(other))

    def _compare_tensor(self, other: Any) -> _Comparison:
        try:
            start = torch_private.storage_address(other)
            is_near = start < self._high and start + _storage_of(other).nbytes() > self._low and start > 0
        except Exception:
            start, is_near = 0, True
        if is_near or (not start and type(other) is not torch.Tensor):
            relation, bounds = self._relation_to(extents_of(other), other)
            if relation is not None:
                return relation, bounds, ""
        if self._counter and torch_private.version_counter_of(other) == self._counter:
            return self._once_shared(other)
        return _UNRELATED

    def _once_shared(self, other: Any) -> _Comparison:
        """Return "stale" for a tensor of the same version counter, unless it lies in the same storage all the same."""
        try:
            is_elsewhere = _storage_of(other)._cdata != _storage_of(self._kin)._cdata
        except Exception:
            return _UNRELATED
        if is_elsewhere:
            return "stale", None, OUTDATED
        is_left = isinstance(self._obj, np.ndarray) and has_left(self._obj, self._kin)
        return ("stale", None, DANGLING) if is_left else _UNRELATED

    def _compare_array(self, other: Any) -> _Comparison:
        if self._probe is not None and np.may_share_memory(self._probe, other):
            relation, bounds = self._relation_to((extent_of_array(other),), other)
            if relation is not None:
                return relation, bounds, ""
        base = _tensor_under(other) if other.base is not None else None
        if base is None:
            return _UNRELATED
        start = torch_private.storage_address(base)
        is_near = 0 < start < self._high and start + _storage_of(base).nbytes() > self._low
        is_kin = bool(self._counter) and torch_private.version_counter_of(base) == self._counter
        if (is_near or is_kin) and has_left(other, base):
            return "stale", None, DANGLING
        return ("stale", None, OUTDATED) if is_kin and not is_near else _UNRELATED

    def _relation_to(self, extents: tuple[Extent, ...], other: Any) -> tuple[Relation | None, tuple[int, int] | None]:
        """Return the closest relation of any of my extents to any of `extents`."""
        if self._is_lazy or (isinstance(other, torch.Tensor) and torch_private.is_lazily_copied(other)):
            return None, None
        best: tuple[Relation | None, tuple[int, int] | None] = (None, None)
        for mine in self._extents:
            for extent in extents:
                relation = relation_of(mine, extent)
                if relation is None:
                    continue
                if relation != "may overlap" and (len(self._extents) > 1 or len(extents) > 1):
                    # One of several parts: not the same as the whole.
                    relation = "overlapping"
                if best[0] is None or RELATIONS.index(relation) < RELATIONS.index(best[0]):
                    low, high = shared_bounds(mine, extent)
                    best = relation, (low - mine.bounds[0], high - mine.bounds[0])
        if best[0] is None and self._is_beside(extents, other):
            return "same storage", None
        return best

    def _is_beside(self, extents: tuple[Extent, ...], other: Any) -> bool:
        """Return whether storages or buffers meet, although no element does."""
        if not extents or not self._extents or extents[0].device != self._extents[0].device:
            return False
        spans = _spans_of(other, extents)
        return any(low < top and bottom < high for low, high in self._spans for bottom, top in spans)


def _tensor_under(obj: Any) -> torch.Tensor | None:
    """Return the tensor that an array was made of, if it is a view of one."""
    return origin_of(obj).tensor if isinstance(obj, np.ndarray) else None


def _storage_of(tensor: torch.Tensor) -> torch.UntypedStorage:
    return torch.Tensor.untyped_storage(tensor)


def _spans_of(obj: Any, extents: tuple[Extent, ...]) -> list[tuple[int, int]]:
    """Return the addresses from and to which the storages or the buffer go, of which `extents` are parts."""
    if isinstance(obj, torch.Tensor):
        if len(extents) == 1:
            try:
                start = torch_private.storage_address(obj)
                if start:
                    return [(start, start + _storage_of(obj).nbytes())]
            except Exception:
                pass
        return [extent.bounds for extent in extents]
    if isinstance(obj, STORAGES):
        return [extent.bounds for extent in extents]
    return [origin_of(array_over(obj)).bounds]


def memory_spans(obj: Any) -> list[tuple[str, int, int]]:
    """Return the devices and addresses from and to which the storages of a tensor, or the buffer of an array, go."""
    if isinstance(obj, torch.Tensor) and _layout_slot.__get__(obj) == torch.strided:
        start = torch_private.storage_address(obj)
        if start:
            nbytes = _storage_of(obj).nbytes()
            return [(str(_device_slot.__get__(obj)), start, start + nbytes)] if nbytes else []
        if type(obj) is torch.Tensor:
            return []
    if isinstance(obj, np.ndarray):
        base = origin_of(obj).tensor
        if base is not None and not has_left(obj, base):
            return memory_spans(base)
        low, high = origin_of(obj).bounds
        return [("cpu", low, high)] if low and low < high else []
    extents = extents_of(obj)
    return [(extent.device, *span) for extent, span in zip(extents, _spans_of(obj, extents), strict=False)]


def shares_bytes(a: Any, b: Any) -> bool:
    """Return whether an element of `a` and one of `b`, tensors or arrays, have a byte in common, or may have."""
    others = extents_of(b)
    return any(relation_of(mine, other) is not None for mine in extents_of(a) for other in others)


def extents_of(obj: Any, info: TensorInfo | None = None) -> tuple[Extent, ...]:
    """Return where the elements of a tensor or an array lie; several for one that consists of several tensors.

    `info` is its metadata, where that was read already.
    """
    if info is not None and info.form == "strided":
        return tuple(extent for extent in _extents_at(info) if not extent.is_empty)
    if isinstance(obj, STORAGES):
        obj = tensor_of(obj)
    if not isinstance(obj, torch.Tensor):
        return (extent_of_array(array_over(obj)),)
    with torch_private.undisturbed(), quiet(obj):
        return tuple(extent for extent in _extents_of(obj, 0) if not extent.is_empty)


def _extents_of(tensor: torch.Tensor, depth: int) -> Iterator[Extent]:
    info = inspect(tensor)
    if info.storage is not None and info.stride is not None:
        yield from _extents_at(info)
        return
    if depth > 8 or info.data_state not in ("available", "wrapped", "remote"):
        return
    if info.data_state == "wrapped" or info.form == "dequantized":
        inner = [value for _, value in own_attributes(tensor) if torch.Tensor in type(value).__mro__]
    else:
        held = held_tensor(tensor, info.form)
        inner = [*([held] if held is not None else []), *parts_of(tensor, info.form)]
        if info.form == "nested" and held is not None:
            # The other parts only say where one tensor ends and the next begins.
            inner = [held]
    for part in inner:
        yield from _extents_of(part, depth + 1)


def _extents_at(info: TensorInfo) -> Iterator[Extent]:
    # What lies past the end of a storage that was freed or shrunk belongs to others.
    if info.storage is not None and info.stride is not None and info.data_state == "available":
        yield extent_of(info)


def extent_of(info: TensorInfo) -> Extent:
    """Return where the elements lie of which `info` knows strides and storage."""
    assert info.storage is not None and info.stride is not None
    bits = "conj " * info.is_conj + "neg " * info.is_neg
    meaning, device = bits + dtype_name(info.dtype), str(info.device)
    if info.dtype in (torch.quint4x2, torch.quint2x4):
        # Several codes a byte: strides count codes, so only the span is known.
        offset = info.storage_offset or 0
        per_byte = 2 if info.dtype == torch.quint4x2 else 4
        span = max(info.storage.reach - offset // per_byte, 0)
        return Extent(device, info.storage.address, (span,), (1,), 1, meaning)
    strides = tuple(step * info.itemsize for step in info.stride)
    return Extent(device, info.storage.address, info.shape, strides, info.itemsize, meaning)


def sees_same_elements(tensor: torch.Tensor, array: np.ndarray[Any, Any]) -> bool:
    """Return whether element for element `array` lies where `tensor` does, with the same meaning of its bytes.

    False where that is not known: lazy conjugates and negatives, empty tensors, other devices. Reads metadata only.
    """
    extents = extents_of(tensor)
    return len(extents) == 1 and relation_of(extents[0], extent_of_array(array)) == "same elements"

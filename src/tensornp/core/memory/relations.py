"""How the bytes of one tensor or array relate to those of another object, asked of very many objects in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel import raw_memory, torch_private
from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.memory.arrays import array_over, base_of, extent_of_array, has_left, origin_of
from tensornp.core.memory.extents import RELATIONS, Extent, Relation, relation_of, shared_bounds, span_array
from tensornp.core.memory.footprint import extents_of, is_one_storage, meet, spans_of, storage_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import STORAGES, form_of, tensor_of

DANGLING = "its memory was given back when the storage moved: do not read or write it"
OUTDATED = "it keeps the memory that the storage has left"
Related = tuple[Relation | None, tuple[int, int] | None, str]
"""The relation, between which bytes, and a note."""
WRITTEN = ("same object", "same elements", "reinterpreted", "overlapping", "may overlap")
"""The relations in which a write on one side is seen on the other, or may be."""
_UNRELATED: Related = (None, None, "")


class Target:
    """The bytes of one tensor or array, which others are compared with."""

    def __init__(self, obj: Any, info: TensorInfo | None = None) -> None:
        self._obj = obj
        self._extents = extents_of(obj, info)
        self._spans = spans_of(obj)
        self._low = min((low for _, low, _ in self._spans), default=0)
        self._high = max((high for _, _, high in self._spans), default=0)
        is_host = bool(self._extents) and self._extents[0].device == "cpu"
        self._probe = span_array(self._low, self._high) if is_host and self._high else None
        # The tensor whose version counter tells the kin: that of an array is under it.
        self._kin: Any = obj if is_tensor(obj) else _tensor_under(obj)
        self._counter = raw_memory.version_counter_of(self._kin) if self._kin is not None else 0
        self._is_lazy = is_tensor(obj) and torch_private.is_lazily_copied(obj)

    def compare(self, other: Any) -> Related:
        """Return how `other` relates, between which bytes, and a note; quickly for the many that do not."""
        if other is self._obj:
            return "same object", None, ""
        cls = type(other)
        if cls is np.ndarray:
            return self._compare_array(other)
        # `isinstance` would ask an array of the user's for its `__class__`.
        if cls is torch.Tensor or issubclass(cls, torch.Tensor):
            return self._compare_tensor(other)
        if any(type(other) is kind for kind in STORAGES):
            return self._compare_tensor(tensor_of(other))
        return self._compare_array(array_over(other))

    def _compare_tensor(self, other: Any) -> Related:
        try:
            start = torch_private.storage_address(other)
            is_near = start < self._high and start + storage_of(other).nbytes() > self._low and start > 0
        except Exception:
            start, is_near = 0, True
        if is_near or (not start and type(other) is not torch.Tensor):
            relation, bounds = self._relation_to(extents_of(other), other)
            if relation is not None:
                return relation, bounds, ""
        if self._counter and raw_memory.version_counter_of(other) == self._counter:
            return self._once_shared(other)
        return _UNRELATED

    def _once_shared(self, other: Any) -> Related:
        """Return "stale" for a tensor of the same version counter, unless it lies in the same storage all the same."""
        try:
            is_elsewhere = not is_one_storage(other, self._kin)
            if _never_had_bytes(other) or _never_had_bytes(self._obj) or not (_is_own(other) and _is_own(self._kin)):
                return _UNRELATED
            if _is_empty(other) and _is_empty(self._obj):
                # Nothing is left of what they may have shared.
                return _UNRELATED
        except Exception:
            return _UNRELATED
        if is_elsewhere:
            return "stale", None, OUTDATED
        is_left = is_array(self._obj) and has_left(self._obj, self._kin)
        return ("stale", None, DANGLING) if is_left else _UNRELATED

    def _compare_array(self, other: Any) -> Related:
        has_base = base_of(other) is not None
        if self._probe is not None and self._is_near(other, has_base):
            relation, bounds = self._relation_to(extents_of(other), other)
            if relation is not None:
                return relation, bounds, ""
        base = _tensor_under(other) if has_base else None
        if base is None or extent_of_array(other).is_empty:
            return _UNRELATED
        start = torch_private.storage_address(base)
        is_near = 0 < start < self._high and start + storage_of(base).nbytes() > self._low
        is_kin = bool(self._counter) and raw_memory.version_counter_of(base) == self._counter
        if not (is_near or is_kin) or _never_had_bytes(self._obj) or not (_is_own(base) and _is_own(self._kin)):
            return _UNRELATED
        if has_left(other, base):
            return "stale", None, DANGLING
        return ("stale", None, OUTDATED) if is_kin and not is_near else _UNRELATED

    def _is_near(self, array: Any, has_base: bool) -> bool:
        """Return whether `array`, or the buffer that it is a view of, comes near; asked of all, so it must be quick."""
        if not has_base and type(array) is np.ndarray:
            return np.may_share_memory(self._probe, array)
        # NumPy is not asked about a subclass: that may answer in its place, or raise.
        low, high = origin_of(array).bounds if has_base else extent_of_array(array).bounds
        return low < self._high and high > self._low

    def _relation_to(self, extents: tuple[Extent, ...], other: Any) -> tuple[Relation | None, tuple[int, int] | None]:
        """Return the closest relation of any of my extents to any of `extents`."""
        is_tensor = issubclass(type(other), torch.Tensor)
        is_lazy = self._is_lazy or (is_tensor and torch_private.is_lazily_copied(other))
        # The first write makes memory for all views of one lazy copy, and for no other.
        if is_lazy and not (is_tensor and self._kin is not None and is_one_storage(other, self._kin)):
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
        if not extents or not self._extents:
            return False
        return meet(self._spans, spans_of(other))


def _tensor_under(obj: Any) -> torch.Tensor | None:
    """Return the tensor that an array was made of, if it is a view of one."""
    return origin_of(obj).tensor if is_array(obj) else None


def _never_had_bytes(obj: Any) -> bool:
    """Return whether `obj` is an empty view of something, not what `set_` or ``.data =`` has made empty."""
    return _is_empty(obj) and (is_array(obj) or storage_of(obj).nbytes() > 0)


def _is_empty(obj: Any) -> bool:
    if is_array(obj):
        return extent_of_array(obj).is_empty
    return is_tensor(obj) and not _numel(obj)


def _is_own(tensor: Any) -> bool:
    """Return whether `tensor` has strides over a storage, and who shares its counter has once shared that storage.

    The indices and the values of a sparse tensor share a counter only, and so do a wrapper and what it wraps.
    """
    if tensor is None:
        return True
    form = form_of(tensor)
    if form.state != "available" or not form.kind.has_strides:
        return False
    whole = _view_base(tensor)
    return whole is None or _layout(whole) == torch.strided


_numel: Any = torch.Tensor.numel
_view_base, _layout = (getattr(torch.Tensor, name).__get__ for name in ("_base", "layout"))

"""Recognize a tensor later without keeping it alive.

A weak reference to a tensor would make torch refuse `swap_tensors`, and so the conversion of some modules. Its id and
its storage identify it, or its version counter.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.memory.footprint import bases_of, storage_of
from tensornp.core.tensor.kinds import parts_of

_requires_grad: Any = torch.Tensor.requires_grad


class TensorReference:
    """Recognizes a tensor, and keeps neither it nor its memory alive; another may get its `id` later."""

    __slots__ = ("_counter", "_requires_grad", "_storages", "id", "storages")

    @modes.outside_modes
    def __init__(self, tensor: torch.Tensor) -> None:
        self.id = id(tensor)
        self._storages = list(map(StorageWeakRef, _storages_of(tensor)))
        self.storages = {storage.cdata for storage in self._storages}
        self._requires_grad = _requires_grad.__get__(tensor)
        self._counter = _counter_of(tensor)

    @property
    def is_gone(self) -> bool:
        """Whether all storages were freed; a tensor without one is never known to be gone."""
        return bool(self._storages) and all(storage.expired() for storage in self._storages)

    def is_of(self, obj: Any) -> bool:
        """Return whether `obj` is that tensor: also if ``.data =`` or `set_` has moved it to another storage."""
        if id(obj) != self.id or not is_tensor(obj):
            return False
        return self.shares_storage(obj) or (self._counter is not None and _share_counter(self._counter, obj))

    @modes.outside_modes
    def shares_storage(self, obj: torch.Tensor) -> bool:
        now = {storage._cdata for storage in _storages_of(obj)}
        return bool(now) and now == {storage.cdata for storage in self._storages if not storage.expired()}

    def shares_counter(self, other: TensorReference) -> bool:
        """Return whether torch counts writes to both tensors together, as to a tensor and its views."""
        if self._counter is None or other._counter is None:
            return False
        # A parameter, which another thread may write to, is its own proof. Others may be a new `.data`.
        is_same = self._requires_grad and self.id == other.id and self.storages == other.storages
        return is_same or _share_counter(self._counter, other._counter)

    def find(self, likely: Iterable[Any] = ()) -> torch.Tensor | None:
        for obj in likely:
            if self.is_of(obj):
                return obj  # type: ignore[no-any-return]
        found = [] if self.is_gone else [obj for obj in gc.get_objects() if id(obj) == self.id]
        return found[0] if found and self.is_of(found[0]) else None


@modes.outside_modes
def freed_test(obj: Any) -> Callable[[], bool]:
    """Return a function that tells whether the memory of a tensor or an array was freed; it keeps neither."""
    views = [obj, *bases_of(obj)]
    if is_tensor(views[-1]):
        reference = TensorReference(views[-1])
        return lambda: reference.is_gone
    owner: Any = None
    for one in views:
        # The owner of the memory, or the last view of it that can have a weak reference.
        with suppress(TypeError):
            owner = weakref.ref(one)
    return lambda: owner is not None and owner() is None


def _storages_of(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
    try:
        return [storage_of(tensor)]
    except (RuntimeError, NotImplementedError):
        # Sparse layouts and wrappers have none of their own.
        return [storage_of(part) for part, _ in parts_of(tensor)]


def _counter_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return an empty tensor that shares the version counter of `tensor`, and no memory; or None."""
    is_plain = type(tensor).__torch_dispatch__ in torch_private.PLAIN_DISPATCH
    if not is_plain or torch_private.is_functional_wrapper(tensor):
        return None
    try:
        counter = quietly(torch.Tensor.detach, tensor)
        # Setting `.data` keeps the counter.
        counter.data = quietly(torch.empty, 0, dtype=counter.dtype, device=counter.device)
        return counter if counter._version == tensor._version else None
    except Exception:
        # Inference tensors count nothing; the data of sparse, nested and other layouts cannot be set.
        return None


@modes.outside_modes
def _share_counter(counter: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Return whether two tensors have one version counter; a number is set on one and set back at once."""
    try:
        version = counter._version
        if tensor._version != version:
            return False
        try:
            torch_private.set_versions((counter,), (version + 1,))
            return bool(tensor._version == version + 1)
        finally:
            torch_private.set_versions((counter,), (version,))
    except RuntimeError:
        return False

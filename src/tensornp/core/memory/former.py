"""What has shared the memory of a tensor, told again once the tensor has left that memory; none of it is kept alive."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tensornp.core.lowlevel.ordinary import is_of_torch


class Former:
    """Arrays by their identity, and tensors over another storage by that: a weak reference to them would disturb torch.

    Of tensors over the same storage, their version counter tells as much.
    """

    __slots__ = ("_arrays", "_storages")

    def __init__(self) -> None:
        self._arrays: dict[int, weakref.ref[Any]] = {}
        self._storages: dict[int, StorageWeakRef] = {}

    def note(self, other: Any, beside: Any = None) -> None:
        """Take an array or a tensor that shares the memory of `beside` now."""
        if type(other) is np.ndarray:
            self._arrays[id(other)] = weakref.ref(other)
            return
        storage, own = _storage_of(other), _storage_of(beside)
        if storage is not None and (own is None or own._cdata != storage._cdata):
            self._storages.setdefault(storage._cdata, StorageWeakRef(storage))

    def __contains__(self, other: object) -> bool:
        if type(other) is np.ndarray:
            reference = self._arrays.get(id(other))
            return reference is not None and reference() is other
        storage = _storage_of(other) if self._storages else None
        return storage is not None and storage._cdata in self._storages

    def living(self) -> Former:
        """Return what of it is not gone, which takes more by itself."""
        made = Former()
        made._arrays = {key: one for key, one in self._arrays.items() if one() is not None}
        made._storages = {key: one for key, one in self._storages.items() if not one.expired()}
        return made


def _storage_of(obj: Any) -> torch.UntypedStorage | None:
    """Return the storage of an ordinary tensor; None where there is none."""
    try:
        return torch.Tensor.untyped_storage(obj) if is_of_torch(obj) else None
    except (RuntimeError, NotImplementedError):
        return None

"""Identify storages without keeping them alive."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.multiprocessing.reductions import StorageWeakRef


class WeakStorages:
    """Weak references to storages; while one is kept, no other storage has its key."""

    def __init__(self) -> None:
        self._held: dict[int, StorageWeakRef] = {}

    def add(self, storage: torch.UntypedStorage) -> int:
        """Add a storage and return its key."""
        key: int = storage._cdata
        if key not in self._held:
            self._held[key] = StorageWeakRef(storage)
        return key

    def are_gone(self, keys: Iterable[int]) -> list[int]:
        """Return the keys of freed storages."""
        return [key for key in keys if self._held[key].expired()]

    def let_go(self, keys: Iterable[int] | None = None) -> None:
        """Forget some storages, or all."""
        for key in list(self._held if keys is None else keys):
            self._held.pop(key, None)

"""Storages that are known and not kept: let go of by calls of C, since Ctrl-C is lost in a `__del__` of Python's."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import torch

_expired, _free = torch.UntypedStorage._expired, torch.UntypedStorage._free_weak_ref


class WeakStorages:
    """Weak references to storages, each by a number that no other storage has until it is let go of."""

    def __init__(self) -> None:
        # Whoever does not end it leaves some bytes behind for each; what does that by itself is Python code, too.
        self._held: set[int] = set()

    def add(self, storage: torch.UntypedStorage) -> int:
        """Take in a storage, if it is not known; return its number, which is its `_cdata`."""
        key: int = storage._cdata
        if key not in self._held:
            storage._weak_ref()
            self._held.add(key)
        return key

    def are_gone(self, keys: Iterable[int]) -> list[int]:
        """Return those that have been freed."""
        return [key for key in keys if _expired(key)]

    def let_go(self, keys: Iterable[int] | None = None) -> None:
        """Forget storages, or all of them."""
        gone = self._held.intersection(self._held if keys is None else keys)
        self._held -= gone
        # By one call: what is interrupted before it is never freed twice.
        deque(map(_free, gone), maxlen=0)

"""Storages that are known and not kept: let go of by calls of C, since Ctrl-C is lost in a `__del__` of Python's."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable

import torch

_expired, _free = torch.UntypedStorage._expired, torch.UntypedStorage._free_weak_ref


class WeakStorages:
    """Weak references to storages, each by a number that no other storage has until it is let go of."""

    def __init__(self) -> None:
        self._held: set[int] = set()
        # Whoever has not ended it leaves nothing behind either.
        self._finalizer = weakref.finalize(self, _let_go, self._held, None)
        self._finalizer.atexit = False

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
        """Forget storages, or all of them, and for good then."""
        if keys is None:
            self._finalizer.detach()
        _let_go(self._held, keys)


def _let_go(held: set[int], keys: Iterable[int] | None) -> None:
    gone = held.intersection(held if keys is None else keys)
    held -= gone
    # By one call: what is interrupted before it is never freed twice.
    deque(map(_free, gone), maxlen=0)

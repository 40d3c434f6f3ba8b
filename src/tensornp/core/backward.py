"""What autograd has saved for a backward to come, and would find changed after a write that it does not see."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from tensornp.core import torch_private
from tensornp.core.extents import relation_of
from tensornp.core.reach import extents_of

MAX_SECONDS = 1.0
_grad_fn_slot: Any = torch.Tensor.grad_fn
_WRITTEN = ("same object", "same elements", "reinterpreted", "overlapping", "may overlap")


class Saved(NamedTuple):
    """The operations that have saved elements of a tensor, and how many operations were looked at if not all."""

    names: tuple[str, ...]
    stopped_at: int = 0


def saved_for(tensor: torch.Tensor, tracked: Iterable[torch.Tensor] = (), max_seconds: float = MAX_SECONDS) -> Saved:
    """Return the names of the operations whose backward has saved elements of `tensor`: ``("ExpBackward0",)``.

    Looks through the graphs behind the tensors `tracked`, and behind `tensor` itself, the nearest operations first.
    Nothing is unpacked, so no hook runs and no version is checked. Not seen: what hooks have packed into something
    else, what a custom function keeps in attributes of its own, and graphs that no given tensor leads to.
    """
    deadline = time.perf_counter() + max_seconds
    names: dict[str, None] = {}
    count = 0
    with torch_private.undisturbed():
        begin = [node for node in map(_grad_fn, (tensor, *tracked)) if node is not None]
        target = _Elements(tensor) if begin else None
        for node in _nodes(begin):
            count += 1
            name = type(node).__name__
            if target is not None and name not in names and any(map(target.meets, _saved_tensors(node))):
                names[name] = None
            if not count % 64 and time.perf_counter() > deadline:
                return Saved(tuple(names), count)
    return Saved(tuple(names))


def _nodes(waiting: list[Any]) -> Iterator[Any]:
    """Yield each operation of the graphs that begin at some of them once, the nearest first."""
    # Kept alive until the end, so that an identity stands for one operation.
    seen: dict[int, Any] = {}
    queue = deque(waiting)
    while queue:
        node = queue.popleft()
        if id(node) not in seen:
            seen[id(node)] = node
            yield node
            queue.extend(following for following, _ in node.next_functions if following is not None)


def _grad_fn(tensor: torch.Tensor) -> Any:
    try:
        return _grad_fn_slot.__get__(tensor)
    except RuntimeError:
        # torch raises on views that were changed in place under no_grad.
        return None


_SAVED_NAMES: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()
"""By the class of a node, of which a cell may define new ones again and again."""


def _saved_names(kind: type) -> tuple[str, ...]:
    names = _SAVED_NAMES.get(kind)
    if names is None:
        names = _SAVED_NAMES[kind] = tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))
    return names


def _saved_tensors(node: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors that a node has saved, as they are: `SavedTensor.data` runs no hook; freed ones give None."""
    for name in _saved_names(type(node)):
        try:
            saved = getattr(node, name)
            for item in saved if isinstance(saved, (tuple, list)) else (saved,):
                data = getattr(item, "data", None)
                if isinstance(data, torch.Tensor):
                    yield data
        except RuntimeError:
            # Freed by a backward.
            continue


class _Elements:
    """Where the elements of a tensor lie; most others are told to lie elsewhere by one address."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._extents = extents_of(tensor)
        self._low = min((extent.bounds[0] for extent in self._extents), default=0)
        self._high = max((extent.bounds[1] for extent in self._extents), default=0)

    def meets(self, other: torch.Tensor) -> bool:
        """Return whether an element of the tensor is, or may be, one of `other`."""
        try:
            start = torch_private.storage_address(other)
            end = start + torch.Tensor.untyped_storage(other).nbytes()
            if start > 0 and (start >= self._high or end <= self._low):
                return False
        except Exception:
            # Sparse tensors and wrappers have no storage of their own, but parts that have.
            pass
        return any(relation_of(a, b) in _WRITTEN for a in self._extents for b in extents_of(other))

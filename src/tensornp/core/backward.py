"""What autograd has saved for a backward to come, and would find changed after a write that it does not see."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from tensornp.core import torch_private
from tensornp.core.aliasing import extents_of
from tensornp.core.extents import Extent, relation_of

MAX_NODES = 10_000
"""Nodes of graphs that are visited."""
MAX_NAMED = 3
_grad_fn_slot: Any = torch.Tensor.grad_fn
_WRITTEN = ("same object", "same elements", "reinterpreted", "overlapping", "may overlap")


def saved_for(tensor: torch.Tensor, tracked: Iterable[torch.Tensor]) -> tuple[str, ...]:
    """Return the names of the operations whose backward has saved elements of `tensor`: ``("ExpBackward0",)``.

    Looks through the graphs behind the tensors `tracked`, and behind `tensor` itself. Nothing is unpacked, so no hook
    runs and no version is checked. Not seen: what hooks have packed into something else, what a custom function keeps
    in attributes of its own, graphs that no given tensor leads to, and more than `MAX_NODES` operations.
    """
    with torch_private.undisturbed():
        mine = extents_of(tensor)
        if not mine:
            return ()
        names: dict[str, None] = {}
        for node in _nodes([tensor, *tracked]):
            name = type(node).__name__
            if name not in names and any(_meets(mine, saved) for saved in _saved_tensors(node)):
                names[name] = None
        return tuple(names)


def _nodes(tensors: list[torch.Tensor]) -> Iterator[Any]:
    """Yield each operation behind `tensors` once, the nearest first."""
    waiting = deque(fn for fn in map(_grad_fn, tensors) if fn is not None)
    # Kept alive until the end, so that an identity stands for one operation.
    seen: dict[int, Any] = {}
    for _ in range(MAX_NODES):
        while waiting and id(waiting[0]) in seen:
            waiting.popleft()
        if not waiting:
            return
        node = waiting.popleft()
        seen[id(node)] = node
        yield node
        waiting += [following for following, _ in node.next_functions if following is not None]


def _grad_fn(tensor: torch.Tensor) -> Any:
    try:
        return _grad_fn_slot.__get__(tensor)
    except RuntimeError:
        # torch raises on views that were changed in place under no_grad.
        return None


@functools.lru_cache(maxsize=512)
def _saved_names(kind: type) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))


def _saved_tensors(node: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors that a node has saved, as they are: `SavedTensor.data` runs no hook; freed ones give None."""
    for name in _saved_names(type(node)):  # type: ignore[arg-type]  # mypy doubts that classes are hashable
        try:
            saved = getattr(node, name)
            for item in saved if isinstance(saved, (tuple, list)) else (saved,):
                data = getattr(item, "data", None)
                if isinstance(data, torch.Tensor):
                    yield data
        except RuntimeError:
            # Freed by a backward.
            continue


def _meets(mine: tuple[Extent, ...], saved: torch.Tensor) -> bool:
    return not _lies_elsewhere(mine, saved) and any(
        relation_of(a, b) in _WRITTEN for a in mine for b in extents_of(saved)
    )


def _lies_elsewhere(mine: tuple[Extent, ...], saved: torch.Tensor) -> bool:
    """Return whether the storage of `saved` tells that, as most do, many times faster than its metadata would."""
    if type(saved) is not torch.Tensor or saved.layout != torch.strided:
        return False
    try:
        start = torch_private.storage_address(saved)
        end = start + saved.untyped_storage().nbytes()
    except RuntimeError:
        # A wrapper has no storage.
        return False
    return start > 0 and not any(extent.bounds[0] < end and start < extent.bounds[1] for extent in mine)

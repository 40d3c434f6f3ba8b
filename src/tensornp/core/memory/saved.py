"""Find the operations that have saved a tensor for their backward."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.memory.aliases import WRITTEN, Target

MAX_SECONDS = 1.0
NEVER = 2**64
"""A number that no operation has."""
_grad_fn_slot: Any = torch.Tensor.grad_fn
next_operation = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]


class Saved(NamedTuple):
    """The operations that have saved elements; `stopped_at` counts those that were asked if not all."""

    names: tuple[str, ...]
    stopped_at: int = 0
    left_out: bool = False
    oldest: int = NEVER


def saved_for(tensor: torch.Tensor, tracked: Iterable[torch.Tensor] = (), max_seconds: float = MAX_SECONDS) -> Saved:
    """Return the operations that have saved elements of `tensor`: ``("ExpBackward0",)``.

    Follows the graphs of `tensor` and of the tensors `tracked`, the nearest operations first; no hook runs. Not seen:
    tensors that hooks have packed, attributes of a custom function, running statistics that a batch norm has used in
    evaluation, and everything with torch before 2.9.
    """
    deadline = time.thread_time() + max_seconds
    names: dict[str, None] = {}
    count, oldest = 0, NEVER
    with modes.outside_modes():
        begin = list(filter(None, map(_grad_fn, (tensor, *tracked))))
        if not begin:
            return Saved(())
        target, unguarded = Target(tensor), Unguarded()
        for node in _nodes(begin):
            count += 1
            if any(target.compare(saved) in WRITTEN for saved in _saved_tensors(node, unguarded)):
                names[type(node).__name__] = None
                oldest = min(oldest, node._sequence_nr())
            if unguarded.left_out:
                break
            if not count % 64 and time.thread_time() > deadline:
                return Saved(tuple(names), count, oldest=oldest)
    return Saved(tuple(names), left_out=unguarded.left_out, oldest=oldest)


def _nodes(waiting: list[Any]) -> Iterator[Any]:
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


@lru_cache(maxsize=1024)
def _saved_names(kind: Any) -> tuple[str, ...]:
    names = [name for name in dir(kind) if name.startswith("_raw_saved_")]
    # A batch norm that trains has used the statistics of its batch (derivatives.yaml).
    return tuple([name for name in names if not name.startswith("_raw_saved_running_")])


def _saved_tensors(node: Any, unguarded: Unguarded) -> Iterator[torch.Tensor]:
    """Yield the saved tensors of a node; `SavedTensor.data` runs no hook, and is None once freed."""
    for name in _saved_names(node.__class__):
        try:
            saved = unguarded.read(attrgetter(name), node)
            items = saved if isinstance(saved, (tuple, list)) else (saved,)
            found = [getattr(item, "data", None) for item in items]
        except RuntimeError:
            # Freed by a backward.
            continue
        yield from filter(is_tensor, found)

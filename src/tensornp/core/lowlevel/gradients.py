"""Read gradients and saved tensors, which torch does not guard against a backward in another thread."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TypeVar

import torch

NOT_LOOKED_AT = "another thread runs a backward: gradients were not read"
_T = TypeVar("_T")
_grad: Any = torch.Tensor.grad
_requires_grad: Any = torch.Tensor.requires_grad
_WRITERS = frozenset(["_engine_run_backward", "zero_grad"])
"""Functions of torch that write `.grad` and give up the interpreter lock meanwhile."""


class Unguarded:
    """Reads gradients until another thread runs a backward; then `left_out` is True."""

    __slots__ = ("left_out",)

    def __init__(self) -> None:
        self.left_out = False

    def read(self, get: Callable[[Any], _T], obj: Any) -> _T | None:
        self.left_out = self.left_out or backward_runs_elsewhere()
        return None if self.left_out else get(obj)

    def grad_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the gradient of a tensor; None if it has none, or must not be read.

        One that requires none is read at once, also if it was frozen after a forward whose backward runs now.
        """
        return self.read(_grad.__get__, tensor) if _requires_grad.__get__(tensor) else _grad.__get__(tensor)


def have_grads(tensors: Sequence[torch.Tensor]) -> list[bool]:
    """Return for each leaf whether it has a gradient; True for all if another thread runs a backward."""
    is_unknown = backward_runs_elsewhere()
    return [is_unknown or _grad.__get__(one) is not None for one in tensors]


grad_in_hook: Callable[[torch.Tensor], torch.Tensor | None] = _grad.__get__
"""Return the gradient of a leaf in a hook of the backward that is about to add to it."""


def backward_runs_elsewhere() -> bool:
    """Return whether another thread runs a backward; reading `.grad` beside it would crash (a few µs).

    Before Python 3.11.5, a garbage collection meanwhile may deadlock (python/cpython#106883).
    """
    if len(sys._current_frames()) == 1:
        return False
    # Without a sleep, other threads may take the interpreter lock during this walk, and f_back crashes. A call that
    # only gives the lock up, such as os.stat, was not enough.
    time.sleep(0)
    frames = sys._current_frames()
    own = frames.pop(threading.get_ident())
    others = sum(map(_is_in_backward, frames.values()))
    # A thread of torch, one per device, does a part of a backward that another thread waits for.
    is_part = torch._C._current_graph_task_id() != -1 and not _is_in_backward(own)
    del own
    return others > is_part


def _is_in_backward(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _WRITERS and str(frame.f_globals.get("__name__")).startswith("torch."):
            return True
        frame = frame.f_back
    return False

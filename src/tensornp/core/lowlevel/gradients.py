"""What torch does not guard against a backward in another thread: gradients, and what the nodes of a graph have saved.

Read meanwhile, either ends the process. So both are read here alone, while nobody else runs code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

import torch

from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.private_names import find

NOT_LOOKED_AT = "another thread is running: gradients were not looked at"
_T = TypeVar("_T")
_MAX_READS = 32
"""Reads after which it is asked again whether somebody else runs code: a widget's callback may have begun."""
_grad: Any = torch.Tensor.grad
_engine, _graph_task = find("autograd.graph._engine_run_backward"), find("_C._current_graph_task_id")


class Unguarded:
    """Reads for one look what torch does not guard.

    Attributes
    ----------
    left_out : bool
        Whether something was not read, since another thread runs; nothing is from then on.
    """

    __slots__ = ("_begun", "_left", "left_out")

    def __init__(self) -> None:
        self.left_out = False
        self._left, self._begun = 0, -1

    def read(self, get: Callable[[Any], _T], obj: Any) -> _T | None:
        """Return what `get` reads of `obj`, or None where it must not be read."""
        while not self.left_out:
            with threads.GATE:
                if self._may_read():
                    self._left -= 1
                    return get(obj)
            self.left_out = not threads.patience.wait()
        return None

    def _may_read(self) -> bool:
        """Return whether nobody else runs, as far as it was asked lately."""
        if self._left <= 0 or self._begun != threads.cells.begun:
            caller = _who_waits() if _graph_task is not None and _graph_task() != -1 else None
            is_alone = not (threads.others_run() if caller is None else threads.others_run(caller))
            self._left, self._begun = _MAX_READS if is_alone else 0, threads.cells.begun
        return self._left > 0

    def grad_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the gradient of a tensor; None where there is none, or it was left out."""
        return self.read(_grad.__get__, tensor)


def _who_waits() -> CodeType | None:
    """Return the code of the call that began the backward, where that waits for this thread to do its part.

    Torch has a thread for each device but the CPU, in which no such call is seen. Each accumulates the gradients of its
    own device, and the thread that called those of the CPU.
    """
    if _engine is None:
        return None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _engine.__code__:
            return None
        frame = frame.f_back
    code: CodeType = _engine.__code__
    return code

"""Python's garbage collector, held back for a moment."""

from __future__ import annotations

import gc
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakSet

from tensornp.core.lowlevel.locks import Held

_blocks: WeakSet[Held] = WeakSet()
"""Those that hold it back now; nobody else keeps one."""
_was_held: list[bool] = []
"""Whether one did when this process was copied."""


def uncollected() -> AbstractContextManager[Any]:
    """Return a block in which nothing is collected, unless nothing is anyway; it is as it was after it.

    Whoever makes hundreds of thousands of objects that stay would have each of them visited several times.
    """
    if not gc.isenabled():
        return nullcontext()
    block = Held(gc.disable, gc.enable)
    _blocks.add(block)
    return block


def _note_copy() -> None:
    _was_held[:] = [bool(_blocks)]


def _enable_in_copy() -> None:
    """Have the copy collect, in which no other thread lives to end its block."""
    if _was_held[0]:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note_copy, after_in_child=_enable_in_copy)

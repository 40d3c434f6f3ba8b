"""What the frames tell in which torch calls a module: inside which call, with which keywords, ended by which error."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from torch.nn.modules import module as torch_module

_MOST_FRAMES = 3


def is_within(address: int, frame: FrameType | None) -> bool:
    """Return whether the frame at an address is one of those that have led to `frame`."""
    while frame is not None:
        if id(frame) == address:
            return True
        frame = frame.f_back
    return False


def keywords_of(frame: FrameType | None) -> dict[str, Any] | None:
    """Return the keyword arguments of a call whose hooks are called; None where this torch keeps them elsewhere.

    Hooks for all modules that come before a call are not given them, and after it they may have been written.
    """
    for _ in range(_MOST_FRAMES):
        if frame is None or frame.f_code.co_filename != torch_module.__file__:
            return None
        if "kwargs" in (*frame.f_code.co_varnames, *frame.f_code.co_freevars, *frame.f_code.co_cellvars):
            names = frame.f_locals
            keywords = names.get("kwargs")
            # Up to Python 3.12 the frame would keep a copy of its locals until it returns.
            if type(names) is dict and sys.getrefcount(names) <= 3:
                names.clear()
            return keywords if type(keywords) is dict else None
        frame = frame.f_back
    return None


def came_through(error: BaseException, frame: FrameType) -> bool:
    """Return whether an error was raised below a frame, not handled above it when that was called."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame is frame:
            return True
        traceback = traceback.tb_next
    return False

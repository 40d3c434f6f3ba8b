"""What IPython itself keeps alive: results of cells, and the frames of the last traceback."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

from tensornp.core.lowlevel.fallback import is_own


class History:
    """The history of one shell, of which entries can be dropped; a name that the user has bound is never touched."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def other_names(self) -> dict[int, list[str]]:
        """Return which of ``_``, ``__`` and ``___`` hold an object, by its identity."""
        hook, namespace = self._shell.displayhook, self._shell.user_ns
        names: dict[int, list[str]] = {}
        for under in ("_", "__", "___"):
            value = namespace.get(under, "")
            # IPython stops setting these once a user has.
            if value is getattr(hook, under, None) and not (type(value) is str and not value):
                names.setdefault(id(value), []).append(under)
        return names

    def traceback_names(self) -> dict[str, Any]:
        """Return the locals of the last traceback by a name that says where; of a recursion, the innermost."""
        return {
            f"{name} in {frame.f_code.co_name}() of the last traceback": value
            for frame in _frames_of_last_error()
            for name, value in frame.f_locals.items()
        }

    def drop(self, number: int) -> None:
        """Drop the result of one cell, with the names that IPython has bound for it."""
        with suppress(NameError):
            self._shell.del_var(f"_{number}")
        self._shell.user_ns.get("_oh", {}).pop(number, None)

    def clear_last_traceback(self) -> None:
        """Let go of what the functions of the last traceback hold; the traceback itself stays."""
        for frame in _frames_of_last_error():
            _clear(frame)


def clear_own_frames(result: Any) -> None:
    """Let go of what functions of tensornp hold where a cell has ended in an error or in Ctrl-C.

    Python keeps the last error with all its frames, and no user can know of ours. Those of the user's stay as they are.
    """
    if not result.success:
        for frame in filter(is_own, _frames_of_last_error()):
            _clear(frame)


def _clear(frame: FrameType) -> None:
    try:
        frame.clear()
    except RuntimeError:
        # Still running: a generator, or a function that waits.
        return
    # Up to Python 3.12, a frame keeps a second dictionary of its locals, which asking for it brings up to date.
    _ = frame.f_locals


def _frames_of_last_error() -> Iterator[FrameType]:
    """Yield each frame of functions, of the last error and of those that led to it, once, but not of cells."""
    waiting = [getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)]
    seen: set[int] = set()
    while waiting:
        error = waiting.pop()
        if not isinstance(error, BaseException) or id(error) in seen:
            continue
        seen.add(id(error))
        at = error.__traceback__
        while at is not None:
            # A function that has caught one error and raised another stands in the tracebacks of both.
            if at.tb_frame.f_code.co_flags & inspect.CO_OPTIMIZED and id(at.tb_frame) not in seen:
                seen.add(id(at.tb_frame))
                yield at.tb_frame
            at = at.tb_next
        waiting += [error.__cause__, error.__context__]

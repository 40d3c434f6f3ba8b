"""References that IPython keeps: results of cells, and frames of the last traceback."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import Any

from tensornp.core.lowlevel.fallback import is_own

_UNDERS = ("_", "__", "___")


class History:
    """The history of one shell; entries can be dropped, user names are never touched."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def traceback_names(self) -> dict[str, Any]:
        """Return the locals of the last traceback by a name that says where."""
        names: dict[str, Any] = {}
        calls: Counter[str] = Counter()
        for frame in _frames_of_last_error():
            function = frame.f_code.co_name
            calls[function] += 1
            call = f"{function}()" if calls[function] == 1 else f"call {calls[function]} of {function}()"
            names.update({f"{name} in {call} of the last traceback": value for name, value in frame.f_locals.items()})
        return names

    def drop(self, number: int) -> None:
        """Drop the result of one cell, with the names that IPython has bound for it."""
        namespace, hook = self._shell.user_ns, self._shell.displayhook
        value = namespace.get("_oh", {}).pop(number, None)
        if value is not None and namespace.get(f"_{number}") is value:
            self._shell.del_var(f"_{number}")
        for under in _UNDERS:
            if getattr(hook, under, None) is value:
                setattr(hook, under, None)
        # A second table of the names that are IPython's own.
        hidden = self._shell.user_ns_hidden
        hidden.update({name: "" for name, one in hidden.items() if one is value})

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
    """Yield each function frame of the last error and its causes once, without cells."""
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

"""What IPython itself keeps alive: results of cells, and the frames of the last traceback."""

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
    """The history of one shell, of which entries can be dropped; a name that the user has bound is never touched."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def other_names(self) -> dict[int, list[str]]:
        """Return which of ``_``, ``__`` and ``___`` hold an object, by its identity."""
        names: dict[int, list[str]] = {}
        for under in self._unders():
            names.setdefault(id(self._shell.user_ns[under]), []).append(under)
        return names

    def _unders(self) -> list[str]:
        """Return those of the underscores that are IPython's own: it stops setting them once a user has."""
        hook, namespace = self._shell.displayhook, self._shell.user_ns
        return [
            under
            for under in _UNDERS
            if under in namespace and namespace[under] is getattr(hook, under, None) and not _is_blank(namespace[under])
        ]

    def traceback_names(self) -> dict[str, Any]:
        """Return what the functions of the last traceback still hold, by a name that says where."""
        names: dict[str, Any] = {}
        calls: Counter[str] = Counter()
        for frame in _frames_of_last_error():
            function = frame.f_code.co_name
            calls[function] += 1
            # A function that has called itself has several frames, each with locals of its own.
            call = f"{function}()" if calls[function] == 1 else f"call {calls[function]} of {function}()"
            names.update({f"{name} in {call} of the last traceback": value for name, value in frame.f_locals.items()})
        return names

    def drop(self, number: int) -> None:
        """Drop the result of one cell, with the names that IPython has bound for it."""
        namespace, hook, hidden = self._shell.user_ns, self._shell.displayhook, self._shell.user_ns_hidden
        outputs = namespace.get("_oh", {})
        if number not in outputs:
            return
        value = outputs.pop(number)
        if namespace.get(f"_{number}") is value:
            del namespace[f"_{number}"]
        if hidden.get(f"_{number}") is value:
            del hidden[f"_{number}"]
        for under in _UNDERS:
            if getattr(hook, under, None) is value:
                is_own = namespace.get(under) is value
                # Where the user has bound the name, IPython must go on to find that it is not its own.
                setattr(hook, under, "" if is_own else object())
                namespace.update({under: ""} if is_own else {})
        # IPython keeps a second table of the names that are its own.
        hidden.update({under: "" for under in _UNDERS if hidden.get(under) is value})
        last = getattr(self._shell, "last_execution_result", None)
        if last is not None and last.result is value:
            last.result = None

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


def _is_blank(value: Any) -> bool:
    return type(value) is str and not value


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

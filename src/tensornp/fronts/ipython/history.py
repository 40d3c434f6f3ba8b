"""Names, results of cells and the last traceback of one shell."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

_UNDERS = ("_", "__", "___")


class ShellSession:
    """A shell as the session's memory knows it."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    @property
    def names(self) -> Mapping[str, Any]:
        """The namespace, including IPython's history."""
        names: Mapping[str, Any] = self._shell.user_ns
        return names

    @property
    def cell(self) -> str:
        """The cell that runs now: "In[4]"."""
        return f"In[{self._shell.displayhook.prompt_count}]"

    @property
    def source(self) -> str:
        """The source of the cell that runs now; of one that is not stored, that of the last one."""
        return str((self._shell.history_manager.input_hist_parsed or [""])[-1])


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

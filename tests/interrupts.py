"""Ctrl-C at each bytecode of an action, as Python handles it; on Python 3.11 to 3.13."""

from __future__ import annotations

import ctypes
import functools
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_ARGUMENTS = (ctypes.c_int, *[ctypes.py_object] * 3)
_SEND: Any = ctypes.PYFUNCTYPE(None, *_ARGUMENTS)(("PyErr_SetInterruptEx", ctypes.pythonapi))


def interrupted_everywhere(
    action: Callable[[], object], is_ours: Callable[[str], bool], part: int = 1
) -> Iterator[tuple[str, BaseException | None]]:
    """Run `action` once for each place in which it is interrupted; yields that place, and the error that it ended with.

    A place is a bytecode of a file that `is_ours`, the first time that it is run; of many places, every `part`-th is
    tried. Python handles a signal where a function begins, a call has ended, or a loop turns, so that is where the
    error comes. Call it in a process of its own, in the main thread.
    """
    before = signal.signal(signal.SIGINT, _raise)
    try:
        for number in range(_run(action, is_ours, None)[0])[::part]:
            _, where, error = _run(action, is_ours, number)
            yield where, error
    finally:
        signal.signal(signal.SIGINT, before)


def _run(
    action: Callable[[], object], is_ours: Callable[[str], bool], wanted: int | None
) -> tuple[int, str, BaseException | None]:
    """Return how many places there are, and at the one that is `wanted`, where that is and how the action ended."""
    seen: set[Any] = set()
    where = ""

    def at_each(frame: FrameType, event: str, _: object) -> None:
        nonlocal where
        place = frame.f_code, frame.f_lasti
        if event != "opcode" or place in seen:
            return
        if len(seen) == wanted:
            where = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}, {frame.f_lasti}"
            # From now on C is called at each bytecode, and sends it: a function of Python would be interrupted.
            traced.__setstate__((_SEND, (signal.SIGINT,), {}, {}))
            sys.settrace(getattr)
        seen.add(place)

    traced = functools.partial(at_each)

    def at_a_call(frame: FrameType, *_: object) -> Any:
        if not is_ours(frame.f_code.co_filename):
            return None
        frame.f_trace_lines = False
        # In this order, which Python 3.13 wants.
        frame.f_trace = traced
        frame.f_trace_opcodes = True
        return traced

    # Python 3.12 wants to know before that there will be such events.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(at_a_call)
    try:
        action()
        # A call within the `try`: it comes here, where the action has ended before Python looked for it.
        sys.settrace(None)
        error = None
    except BaseException as raised:
        # Kept by the caller, as the last error is: what only its frames hold has not been set back.
        error = raised
    finally:
        sys.settrace(None)
    return len(seen), where, error


def _raise(*_: object) -> None:
    sys.settrace(None)
    raise KeyboardInterrupt

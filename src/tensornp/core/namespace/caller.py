"""Find the names that the caller of a function sees; importing it needs no torch."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any


def names_of_caller(frame: types.FrameType) -> dict[str, Any]:
    return _names_in(frame.f_back or frame)


def name_of(obj: Any, namespace: Mapping[str, Any]) -> str:
    """Return a name that is bound to `obj` itself, but not ``_`` or ``_12``; empty if there is none."""
    names = (name for name, value in namespace.items() if value is obj and type(name) is str)
    return next((name for name in names if name.isidentifier() and name.strip("_0123456789")), "")


def names_of_now(frame: types.FrameType) -> Callable[[], Mapping[str, Any]]:
    """Return a function that returns the names that the caller of a frame's function sees by then."""
    caller = frame.f_back or frame
    return lambda: _names_in(caller)


def _names_in(frame: types.FrameType) -> dict[str, Any]:
    """Return the names that a frame sees; its locals are not kept alive, as Python 3.12 would do."""
    names = frame.f_locals
    found = {**frame.f_globals, **names}
    # Python makes this dictionary again when it is next needed. It must stay if somebody else holds it: the frame, the
    # name here and the argument are three references.
    is_snapshot = type(names) is dict and frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if is_snapshot and sys.getrefcount(names) <= 3:
        names.clear()
    return found

"""Calls of torch of whose warnings nobody hears, since only looking causes them: the one module without a name.

A user who only looks must not be told that the support of a kind is new, or goes away. Filters of warnings are those of
the whole process, and torch warns in the name of the innermost frame of Python: where the globals of that name no
module, Python drops the warning (`warn_explicit` in ``Python/_warnings.c``, where it means that the interpreter is
shutting down).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


def quietly(call: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    """Return what a function of torch returns that is written in C, and warns of the kind of tensor that it makes."""
    return call(*args, **kwargs)


globals()["__name__"] = None

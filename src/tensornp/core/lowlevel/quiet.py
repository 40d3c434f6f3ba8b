"""Drop the warnings of torch that only a display causes.

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
    """Call a C function of torch and drop its warnings."""
    return call(*args, **kwargs)


globals()["__name__"] = None

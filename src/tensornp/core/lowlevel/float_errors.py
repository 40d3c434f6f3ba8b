"""Computing where NumPy says nothing of overflow, NaN and division by zero, whatever the user has chosen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar, cast

import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])

# NumPy before 2.0 keeps it for the thread, and not for a context.
_get_of_thread, _set_of_thread = getattr(np, "geterrobj", None), getattr(np, "seterrobj", None)


def ignoring_float_errors(function: _F) -> _F:
    """Return `function` as one that runs as under ``np.errstate(all="ignore")``, of which nothing is left behind.

    A Ctrl-C as that statement begins or ends would leave the setting to the user's code. Here it is that of a context
    of its own, which is left by C.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return copy_context().run(_run, function, args, kwargs)

    return cast(_F, call)


def _run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    np.seterr(all="ignore")
    return function(*args, **kwargs)


def _run_and_set_back(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    assert _get_of_thread is not None and _set_of_thread is not None
    # What it returns is what the next setting writes to.
    before = [*_get_of_thread()]
    try:
        np.seterr(all="ignore")
        return function(*args, **kwargs)
    finally:
        _set_of_thread(before)


if _set_of_thread is not None:
    _run = _run_and_set_back

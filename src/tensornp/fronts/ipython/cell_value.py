"""The typed expression of a cell's value, and one that reaches it without running code."""

from __future__ import annotations

import ast
import functools
import inspect
from contextlib import suppress
from typing import Any

from IPython.core.display_functions import display
from IPython.core.displayhook import DisplayHook

from tensornp.errors import BadRequestError
from tensornp.fronts.ipython.arguments import NOT_PYTHON
from tensornp.fronts.ipython.history import ShellSession


def typed_expression(shell: Any) -> str:
    """Return the typed expression of the cell's value, empty for an object that it passes to `display`."""
    if shell.ast_node_interactivity not in ("last_expr", "last_expr_or_assign"):
        return ""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not display.__code__:
        if frame.f_code is DisplayHook.__call__.__code__:
            return _last_of(ShellSession(shell).source)
        frame = frame.f_back
    return ""


def reaching_expression(value: Any, shell: Any) -> str:
    """Return an expression that reaches the very value of the cell; empty where none is known.

    A typed call would make another value: then it is a name, or the place where IPython is about to keep the value.
    """
    from tensornp.core.namespace.caller import name_of
    from tensornp.core.namespace.lookup import look_up
    from tensornp.core.namespace.search import history_name

    typed = typed_expression(shell)
    if not typed:
        return ""
    with suppress(BadRequestError):
        if look_up(typed, shell.user_ns) is value:
            return typed
    hook, outputs = shell.displayhook, history_name(shell.user_ns)
    keeps = outputs and hook.cache_size and hook.do_full_cache
    return name_of(value, shell.user_ns) or (f"{outputs}[{hook.prompt_count}]" if keeps else "")


@functools.lru_cache(maxsize=1)
def _last_of(cell: str) -> str:
    """Return the expression that a cell ends in; empty without one."""
    try:
        last = ast.parse(cell).body[-1]
    except (*NOT_PYTHON, IndexError):
        return ""
    typed = ast.get_source_segment(cell, last.value) or "" if isinstance(last, ast.Expr) else ""
    # A magic has become a call that nobody types.
    return typed if "get_ipython()" not in typed else ""

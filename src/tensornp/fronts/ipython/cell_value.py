"""The expression that a user typed to see the value of a cell."""

from __future__ import annotations

import ast
import functools
import inspect
from typing import Any

from IPython.core.display_functions import display
from IPython.core.displayhook import DisplayHook

from tensornp.fronts.ipython.arguments import NOT_PYTHON
from tensornp.fronts.ipython.shell import ShellSession


def typed_expression(shell: Any) -> str:
    """Return the expression of which the value is being shown, as it was typed; empty where that is not known.

    What a cell displays by itself, by a call of `display`, is not its value.
    """
    if shell.ast_node_interactivity not in ("last_expr", "last_expr_or_assign"):
        return ""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not display.__code__:
        if frame.f_code is DisplayHook.__call__.__code__:
            return _last_of(ShellSession(shell).source)
        frame = frame.f_back
    return ""


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

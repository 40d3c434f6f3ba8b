"""The value of the expression after a magic."""

from __future__ import annotations

import linecache
import re
from typing import Any

from IPython.core.error import UsageError

from tensornp.core.lowlevel.text import quoted
from tensornp.fronts.ipython.arguments import NOT_PYTHON

_FILE = "<expression>"


def evaluated(shell: Any, expression: str, local_ns: dict[str, Any] | None, usage: str) -> Any:
    """Return the value of `expression`, with local names.

    Raise UsageError with the `usage` if it is not Python.
    """
    __tracebackhide__ = True
    expression = expression.rstrip().removesuffix(";").rstrip()
    if not expression:
        raise UsageError(f"there is no expression; usage: {usage}")
    namespace = {**shell.user_ns, **(local_ns or {})}
    try:
        code = compile(expression, _FILE, "eval")
    except NOT_PYTHON as error:
        raise UsageError(f"{quoted(expression)} is not an expression ({why_not_python(error)}); {usage}") from None
    # A traceback shows the line, like that of a cell.
    linecache.cache[_FILE] = len(expression), None, [f"{line}\n" for line in expression.splitlines()], _FILE
    try:
        return eval(code, namespace)
    except NameError as error:
        # Read as a difference, an option after the expression is an undefined name.
        behind = re.fullmatch(rf"(.+)\s-({error.name})", expression, re.DOTALL)
        if behind:
            line = f"{usage.split(maxsplit=1)[0]} -{behind[2]} {behind[1]}"
            raise UsageError(f"{error}; options stand before the expression: {line}") from None
        if error.name in code.co_names:
            raise UsageError(f"{error}; define it first") from None
        raise


def why_not_python(error: BaseException) -> str:
    """Return the message of a compiler error in a few words."""
    if isinstance(error, (RecursionError, MemoryError)):
        return "too deeply nested"
    # Python adds its own cure after a semicolon.
    return str(getattr(error, "msg", "") or error).partition(";")[0]

"""The value of the expression after a magic, where the magic was called."""

from __future__ import annotations

import linecache
import re
from traceback import walk_tb
from typing import Any

from IPython.core.error import UsageError

from tensornp.core.lowlevel.quoted import quoted
from tensornp.fronts.ipython.arguments import NOT_PYTHON, why_not_python

_FILE = "<expression>"
"""What the code of an expression has in the place of a file."""


class UndefinedNameError(UsageError):
    """A name in the expression stands for nothing; `said` is what Python says of it."""

    def __init__(self, said: str) -> None:
        super().__init__(f"{said}; define it first")
        self.said = said


def evaluated(shell: Any, expression: str, local_ns: dict[str, Any] | None, usage: str) -> Any:
    """Return the value of `expression`, local names included; UsageError with the `usage` for what is none."""
    __tracebackhide__ = True
    expression = expression.rstrip().removesuffix(";").rstrip()
    if not expression:
        raise UsageError(f"there is no expression; usage: {usage}")
    namespace = shell.user_ns
    if local_ns is not None and local_ns is not namespace:
        namespace = {**namespace, **local_ns}
    try:
        code = compile(expression, _FILE, "eval")
    except NOT_PYTHON as error:
        said = f"{quoted(expression)} is not an expression ({why_not_python(error)})"
        raise UsageError(f"{said}; usage: {usage}") from None
    # A traceback shows the line, as that of a cell.
    linecache.cache[_FILE] = len(expression), None, [f"{line}\n" for line in expression.splitlines()], _FILE
    try:
        return eval(code, namespace)
    except NameError as error:
        *_, (frame, _) = walk_tb(error.__traceback__)
        if frame.f_code.co_filename != code.co_filename:
            # It is missing in a function that the expression calls.
            raise
        # Read as a difference, an option behind the expression is a name that is not defined.
        behind = re.fullmatch(rf"(.+)\s-({error.name})", expression, re.DOTALL)
        if behind:
            line = f"{usage.split(maxsplit=1)[0]} -{behind[2]} {behind[1]}"
            raise UsageError(f"{error}; if it is an option, that stands in front: {line}") from None
        raise UndefinedNameError(str(error)) from None

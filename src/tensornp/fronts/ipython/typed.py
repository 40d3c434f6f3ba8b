"""A path or an expression after a magic."""

from __future__ import annotations

import ast
import os
import re
from typing import Any

from tensornp.fronts.ipython.arguments import NOT_PYTHON
from tensornp.fronts.ipython.evaluate import evaluated

_PATH = (
    r"(?:~|\.{1,2})?[/\\]|[A-Za-z][\w+.-]*:[\\/]|[^\s()\[\]]+\.(safetensors|index\.json|pt|pth|bin|ckpt|npz|npy|gguf)$"
)
_IN_BRACKETS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp)


def typed_value(shell: Any, text: str, local_ns: dict[str, Any] | None, usage: str) -> tuple[Any, str | None]:
    """Return a path, twice, or the value of an expression and None; raise UsageError with the `usage` for neither."""
    __tracebackhide__ = True
    path = path_of(text, {**shell.user_ns, **(local_ns or {})})
    return (path, path) if path is not None else (evaluated(shell, text, local_ns, usage), None)


def path_of(text: str, names: dict[str, Any]) -> str | None:
    """Return the typed path, or None for an expression.

    A path stands in quotes, exists, contains ``://``, or looks like one and does not begin with a variable.
    """
    text = text.strip().removesuffix(";").rstrip()
    if text[:1] in ("'", '"'):
        body, _ = _parsed(text)
        return body.value if isinstance(body, ast.Constant) and isinstance(body.value, str) else None
    try:
        is_there = os.path.lexists(os.path.expanduser(text))
    except ValueError:
        is_there = False
    name = text.partition(".")[0]
    is_path = is_there or (re.match(_PATH, text) is not None and name not in names)
    return text if text and is_path else None


def expression_in(text: str) -> str:
    """Return the typed expression so that ``['a']`` can be appended: without a comment, in parentheses if needed."""
    body, source = _parsed(text)
    is_whole = body is None or isinstance(body, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, *_IN_BRACKETS))
    return source if is_whole else f"({source})"


def argument_in(text: str) -> str:
    """Return the typed expression as an argument of a call; a bare tuple gets parentheses."""
    body, source = _parsed(text)
    is_bare = isinstance(body, ast.Tuple) and bool(body.elts) and body.elts[0].col_offset == body.col_offset
    return f"({source})" if is_bare else source


def _parsed(text: str) -> tuple[ast.expr | None, str]:
    """Return the syntax tree of an expression, None if it is not Python, and its source without a comment."""
    text = text.strip().rstrip("; ")
    try:
        body = ast.parse(text, mode="eval").body
    except NOT_PYTHON:
        return None, text
    return body, ast.get_source_segment(text, body) or text

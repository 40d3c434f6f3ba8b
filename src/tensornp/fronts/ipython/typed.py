"""What stands after a magic that takes models: a path, or an expression."""

from __future__ import annotations

import ast
import os
import re
from typing import Any

from tensornp.fronts.ipython.arguments import NOT_PYTHON, is_expression
from tensornp.fronts.ipython.evaluate import evaluated

# Texts, which are compiled when they are asked for: not to load the extension.
_LOOKS_LIKE_A_PATH = r"[./\\]|[A-Za-z][\w+.-]*:[\\/]|[^\s()\[\]]+\.safetensors$|[^\s()\[\]]+\.index\.json$"
_LOOKS_LIKE_A_FILE = r"[^\s()\[\]]+\.(?:pt|pth|bin|ckpt|npz|npy|gguf)$"
"""What is a path unless it is the attribute of a variable: ``model.pt``."""
_LOOKS_LIKE_A_HUB_S = r"(?=\S*[-/])[A-Za-z][\w.]*(?:-[\w.]+)*(?:/[A-Za-z][\w.-]*)?"
"""What may be the name of a model in a hub: ``bert-base-uncased``, ``sentence-transformers/all-MiniLM-L6-v2``."""
_IN_BRACKETS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp)
_WORD = r"[\w.\-]+"
"""What may be a path that was mistyped."""


def typed_value(shell: Any, text: str, local_ns: dict[str, Any] | None, usage: str) -> tuple[Any, str | None]:
    """Return a path, twice, or the value of an expression and None; UsageError with the `usage` for what is neither."""
    __tracebackhide__ = True
    path, bare = path_of(text), text.strip().rstrip("; ")
    if path is None and re.match(_LOOKS_LIKE_A_FILE, bare) and not _evaluates(shell, bare, local_ns):
        path = bare
    if path is not None:
        return path, path
    return evaluated(shell, text, local_ns, usage), None


def _evaluates(shell: Any, text: str, local_ns: dict[str, Any] | None) -> bool:
    """Return whether dotted names reach something; a mistake in them is that of a path."""
    name, *attributes = text.rstrip("; ").split(".")
    missing = object()
    found = (local_ns or {}).get(name, shell.user_ns.get(name, missing))
    for attribute in attributes:
        try:
            found = getattr(found, attribute, missing)
        except Exception:
            # An expression that raises shows its own error.
            return True
    return found is not missing


def expression_in(text: str) -> str:
    """Return the expression to which ``['a']`` can be appended: without a comment, and in parentheses if need be."""
    body, source = _parsed(text)
    is_whole = body is None or isinstance(body, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, *_IN_BRACKETS))
    return source if is_whole else f"({source})"


def argument_in(text: str) -> str:
    """Return the expression as it stands in the parentheses of a call: as typed, but for a tuple without its own."""
    body, source = _parsed(text)
    is_bare = isinstance(body, ast.Tuple) and bool(body.elts) and body.elts[0].col_offset == body.col_offset
    return f"({source})" if is_bare else source


def _parsed(text: str) -> tuple[ast.expr | None, str]:
    """Return the expression that was typed, None where it is none, and its source without a comment."""
    text = text.strip().rstrip("; ")
    try:
        body = ast.parse(text, mode="eval").body
    except NOT_PYTHON:
        return None, text
    return body, ast.get_source_segment(text, body) or text


def path_of(text: str) -> str | None:
    """Return the path that was typed, or None for an expression; what looks like a path is one, there or not."""
    text = text.strip().removesuffix(";").rstrip()
    if text[:1] in ("'", '"'):
        try:
            unquoted = ast.literal_eval(text)
        except NOT_PYTHON:
            return None
        return unquoted if isinstance(unquoted, str) else None
    if not text:
        return None
    try:
        is_there = os.path.lexists(os.path.expanduser(text))
    except ValueError:
        # NUL bytes and lone surrogates.
        is_there = False
    # A tilde begins an expression too.
    is_path = is_there or re.match(_LOOKS_LIKE_A_PATH, text) or (text.startswith("~") and not is_expression(text))
    return text if is_path else None

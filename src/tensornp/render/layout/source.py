"""Python expressions as the user typed them."""

from __future__ import annotations

import ast

NOT_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)
"""Errors of compiling: ValueError for NUL bytes and lone surrogates, the last two for deep nesting."""
_PRIMARY = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Dict, ast.DictComp, ast.List, ast.ListComp)


def parsed(text: str) -> tuple[ast.expr | None, str]:
    """Return the syntax tree of an expression, None if it is not Python, and its source without a comment."""
    try:
        body = ast.parse(text, mode="eval").body
    except NOT_PYTHON:
        return None, text
    return body, ast.get_source_segment(text, body) or text


def in_parentheses(body: ast.expr | None, source: str) -> str:
    """Return an expression to which ``.x`` or ``[0]`` can be appended."""
    return source if body is None or isinstance(body, _PRIMARY) else f"({source})"

"""Words, numbers and Python expressions as every view says them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

NOT_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)
"""Errors of compiling: ValueError for NUL bytes and lone surrogates, the last two for deep nesting."""
_PRIMARY = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Dict, ast.DictComp, ast.List, ast.ListComp)


def on_this_rank(text: str) -> str:
    """Return the part that this rank holds, as it is said behind the sum of all ranks."""
    return f", {text} on this rank"


def share_text(part: float, whole: float) -> str:
    """Return a share in percent; only exact 0 and 1 give 0% and 100%."""
    text = f"{part / whole:.2%}"
    if part and text == "0.00%":
        return "<0.01%"
    return ">99.99%" if part < whole and text == "100.00%" else text


def first_lines(lines: Iterable[str], most: int, what: str = "more") -> list[str]:
    """Return the first lines, and one on how many more there are."""
    every = list(lines)
    left = len(every) - most
    return every[:most] + ([f"… and {left:,} {what}"] if left > 0 else [])


def listed(names: list[str] | tuple[str, ...], max_names: int) -> str:
    """Return the first names, and how many more there are: ``a, b and 3 more``."""
    left = len(names) - max_names
    return ", ".join(names[:max_names]) + (f" and {left:,} more" if left > 0 else "")


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


_WHOLE = 10_000
_COUNTS = ("", "K", "M", "G", "T")


def format_count(number: int) -> str:
    """Return a number in full below 10,000, else in four digits: ``9,216``, ``11.69 M``."""
    if number < _WHOLE:
        return f"{number:,}"
    power = next((p for p in range(1, len(_COUNTS)) if round(number / 1000**p, 1) < 1000), len(_COUNTS) - 1)
    value = number / 1000**power
    return f"{value:,.{max(4 - len(f'{value:.0f}'), 1)}f} {_COUNTS[power]}"

"""Convert steps into a container to parts of names and of expressions."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from typing import Any

from tensornp.core.tensor.containers import IN_SET
from tensornp.core.tensor.paths import Path, is_plain_tuple, key_text, steps_of, tuple_text

_MAX_BITS = 1000
"""Bits of an integer that is written out."""


def steps_below(path: Path) -> list[Any]:
    """Return the steps from the root to a leaf."""
    return [*steps_of(path)][-2::-1]


def key_of(step: Any) -> str:
    """Return the part of the name for a step."""
    if type(step) is not tuple:
        return str(step).strip("[]").lstrip(".")
    (key,) = step
    return str.__str__(key) if issubclass(type(key), str) else _written(key)


def bracket_of(step: Any) -> str:
    """Return the part of the expression for a step, or a description without code."""
    return f"[{_written(step[0])}]" if type(step) is tuple else str(step)


def parts_of(expression: str) -> dict[str, str]:
    """Return the expressions in a dictionary, list or tuple display, by step.

    The expression in ``{"model": model}`` is ``model``, which still reaches the model after the dictionary is gone.
    """
    try:
        display = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    pairs: Iterable[tuple[Any, ast.expr]] = ()
    if isinstance(display, ast.Dict):
        pairs = (
            (repr(key.value), value)
            for key, value in zip(display.keys, display.values, strict=True)
            if isinstance(key, ast.Constant)
        )
    elif isinstance(display, (ast.List, ast.Tuple)) and not any(isinstance(one, ast.Starred) for one in display.elts):
        pairs = enumerate(display.elts)
    return {f"[{key}]": ast.unparse(value) for key, value in pairs if _is_reached(value)}


def _is_reached(value: ast.expr) -> bool:
    """Return whether an expression has only names, attributes and constant keys."""
    while isinstance(value, (ast.Attribute, ast.Subscript)):
        if isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Constant):
            return False
        value = value.value
    return isinstance(value, ast.Name)


def joined(prefix: str, name: str) -> str:
    """Return the joined name of a module or an optimizer and a part of it."""
    return f"{prefix}.{name}" if prefix and name else prefix or name


def is_writable(steps: Iterable[Any]) -> bool:
    """Return whether code can express the steps: no set member, only constant keys."""
    return all(_is_constant(step[0]) if type(step) is tuple else step != IN_SET for step in steps)


def _is_constant(key: Any) -> bool:
    if type(key) is str:
        # As nearly all are.
        return True
    if is_plain_tuple(key):
        return all(map(_is_constant, key)) and key_text(key) == tuple_text(key)
    if type(key) is int:
        return key.bit_length() <= _MAX_BITS
    if type(key) is float:
        return math.isfinite(key)
    if type(key) is bytes:
        return key_text(key) == repr(key)
    return issubclass(type(key), str) or key is None or type(key) is bool


def _written(key: Any) -> str:
    """Return a key as an expression, or its class without one."""
    if issubclass(type(key), str):
        return repr(str.__str__(key))
    return tuple_text(key) if is_plain_tuple(key) else key_text(key)

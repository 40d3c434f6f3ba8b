"""Which names a block has bound to NaN or Inf on purpose: a bound that is to be lowered, a mask; its text tells."""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import is_tensor

_WORDS = frozenset(("inf", "infinity", "nan"))


def asked_for(codes: Iterable[CodeType], namespace: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that pieces of a program bind to such a number and to nothing else, and those that it is put in.

    What is computed with a tensor, a module or a function of the program's own is no such number.
    """
    bound: set[str] = set()
    given, others = set[str](), set[str]()
    for name, value in (one for code in codes for node in _nodes_of(code) for one in _bindings(node)):
        bound.add(name)
        if any(_is_word(part, namespace) for part in ast.walk(value)):
            given.add(name)
        if name not in given or any(_is_computed(part, namespace) for part in ast.walk(value)):
            others.add(name)
    return frozenset(bound - others), frozenset(given)


def _nodes_of(code: CodeType) -> Iterator[ast.AST]:
    """Yield what the lines of a piece of code consist of; of that of a cell or a file, all lines."""
    with suppress(Exception):
        # What has no text any more, or one of another language, tells nothing.
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
        lines = [line for _, _, line in code.co_lines() if line is not None]
        for node in ast.walk(tree):
            if code.co_name == "<module>" or min(lines) <= getattr(node, "lineno", 0) <= max(lines):
                yield node


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that are bound, or written in place, each with that of which this was done."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            pairs: Iterable[tuple[ast.AST, ast.AST]] = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
            yield from (
                (name.id, value) for one, value in pairs for name in ast.walk(one) if isinstance(name, ast.Name)
            )
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value or node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        given = ast.Tuple([*node.args, *(one.value for one in node.keywords)])
        yield from ((name.id, given) for name in _names_in(node.func.value))


def _names_in(node: ast.AST) -> Iterator[ast.Name]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Name))


def _is_word(node: ast.AST, namespace: Mapping[str, Any]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _WORDS or _is_not_finite(namespace.get(node.id))
    if isinstance(node, ast.Constant):
        text = node.value.lower().lstrip("+-") if isinstance(node.value, str) else ""
        return text in _WORDS or _is_not_finite(node.value)
    return isinstance(node, ast.Attribute) and node.attr in _WORDS


def _is_not_finite(value: Any) -> bool:
    return type(value) is float and not math.isfinite(value)


def _is_computed(node: ast.AST, namespace: Mapping[str, Any]) -> bool:
    value = namespace.get(node.id) if isinstance(node, ast.Name) else None
    return is_tensor(value) or isinstance(value, (torch.nn.Module, FunctionType))

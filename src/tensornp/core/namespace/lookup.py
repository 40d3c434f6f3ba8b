"""Find the object of a name such as ``model.fc.weight`` or ``d['a'][0]``."""

from __future__ import annotations

import ast
import inspect
import types
from collections import deque, namedtuple
from collections.abc import Mapping
from typing import Any

import torch

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.core.namespace.members import registered_names
from tensornp.core.tensor.containers import kept_in
from tensornp.errors import BadRequestError

_MAX_SHOWN = 80
"""Characters of an expression that an error shows."""
_GETTERS = ("get_parameter", "get_buffer", "get_submodule")
_STORED: Any = (types.MemberDescriptorType, type(vars(namedtuple("_", "x"))["x"]))
"""Descriptors that compute nothing: slots and the fields of a named tuple."""
_SEQUENCES: tuple[Any, ...] = (list, tuple, deque)
_MISSING = object()


class NotLookedAtError(BadRequestError):
    """A gradient must not be read now: another thread runs a backward."""


def look_up(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return the object of an expression of names, attributes and constant keys.

    Attributes are read from objects and classes, keys from lists, tuples, deques, dicts and modules.

    Raises
    ------
    BadRequestError
        If there is nothing of that name, or a property or method would have to run.
    """
    try:
        with modes.outside_modes():
            return _reached(ast.parse(expression.strip(), mode="eval").body, namespace)
    except BadRequestError:
        raise
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        reason = "that is no name"
    except (LookupError, AttributeError, TypeError, RuntimeError) as error:
        reason = str(error.args[0]) if error.args else type(error).__name__
    shown = expression if len(expression) <= _MAX_SHOWN else f"{expression[:_MAX_SHOWN]}…"
    raise BadRequestError(f"{shown} cannot be watched ({reason}); name a tensor")


def _reached(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        if node.id not in namespace:
            raise LookupError(f"name {node.id!r} is not defined")
        return namespace[node.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GETTERS:
        module = _reached(node.func.value, namespace)
        if isinstance(module, torch.nn.Module) and len(node.args) == 1:
            return getattr(module, node.func.attr)(ast.literal_eval(node.args[0]))
    if not isinstance(node, (ast.Attribute, ast.Subscript)):
        raise BadRequestError(
            f"{ast.unparse(node)} would have to be run; use names, attributes and constant keys: model.fc.weight"
        )
    obj = _reached(node.value, namespace)
    if isinstance(node, ast.Attribute):
        found = _attribute(obj, node.attr)
    else:
        found = _item(obj, _key(node.slice, namespace))
    if found is _MISSING:
        raise LookupError(f"{ast.unparse(node)} is not stored there, and nothing is run to compute it")
    return found


def _attribute(obj: Any, name: str) -> Any:
    if name == "grad" and is_tensor(obj):
        unguarded = Unguarded()
        grad = unguarded.grad_of(obj)
        if unguarded.left_out:
            raise NotLookedAtError(f"{NOT_LOOKED_AT}; watch it once that has ended")
        return grad
    if name == "__dict__":
        return object.__getattribute__(obj, "__dict__")
    if isinstance(obj, torch.nn.Module):
        for own, _, child, _ in registered_names(obj):
            if own == name:
                return child
    found = inspect.getattr_static(obj, name, _MISSING)
    if isinstance(found, _STORED):
        return found.__get__(obj)
    return _MISSING if hasattr(type(found), "__get__") else found


def _item(obj: Any, key: Any) -> Any:
    for base in _SEQUENCES:
        if isinstance(obj, base) and type(key) is int:
            return base.__getitem__(obj, key)
    if isinstance(obj, dict):
        return dict.get(obj, key, _MISSING)
    if isinstance(obj, torch.nn.Module) or torch_private.is_scripted_table(obj):
        return obj[key]
    table = kept_in(type(obj))
    return _item(_attribute(obj, table), key) if table else _MISSING


def _key(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """Return a constant key, or the parameter that is the key of an optimizer's state."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        key = _reached(node, namespace) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None
    if not is_tensor(key):
        raise LookupError(f"[{ast.unparse(node)}] is not a constant key")
    return key

"""Find the object of a name such as ``model.fc.weight`` or ``d['a'][0]``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.errors import BadRequestError

_MAX_SHOWN = 80
"""Characters of an expression that an error shows."""
_GETTERS = ("get_parameter", "get_buffer", "get_submodule")


class NotLookedAtError(BadRequestError):
    """A gradient must not be read now: another thread runs a backward."""


def look_up(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return the object of an access expression: names, attributes, constant keys and `get_parameter`."""
    try:
        with modes.outside_modes():
            return _reached(ast.parse(expression.strip(), mode="eval").body, namespace)
    except BadRequestError:
        raise
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        reason = "that is no name"
    except Exception as error:
        reason = str(error.args[0]) if error.args else type(error).__name__
    shown = expression if len(expression) <= _MAX_SHOWN else f"{expression[:_MAX_SHOWN]}…"
    raise BadRequestError(f"{shown} cannot be watched ({reason}); name a tensor")


def _reached(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(name):
            if name not in namespace:
                raise LookupError(f"name {name!r} is not defined")
            return namespace[name]
        case ast.Attribute(holder, name):
            return _attribute(_reached(holder, namespace), name)
        case ast.Call(ast.Attribute(holder, name), [argument]) if name in _GETTERS:
            return getattr(_reached(holder, namespace), name)(ast.literal_eval(argument))
        case ast.Subscript(holder, key):
            held = _reached(holder, namespace)
            if is_tensor(held) or is_array(held):
                raise LookupError(f"{ast.unparse(node)} is a part of a tensor")
            return held[_key(key, namespace)]
    raise BadRequestError(
        f"{ast.unparse(node)} would have to be run; use names, attributes and constant keys: model.fc.weight"
    )


def _attribute(held: Any, name: str) -> Any:
    if is_tensor(held) or is_array(held):
        return _grad(held) if name == "grad" and is_tensor(held) else vars(held)[name]
    if isinstance(inspect.getattr_static(type(held), name, None), property):
        # A parametrized weight is computed at each access, and some parametrizations change their state.
        raise LookupError(f".{name} is computed at each access")
    return getattr(held, name)


def _grad(tensor: Any) -> Any:
    unguarded = Unguarded()
    grad = unguarded.grad_of(tensor)
    if unguarded.left_out:
        raise NotLookedAtError(f"{NOT_LOOKED_AT}; watch it once that has ended")
    return grad


def _key(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """Return a constant key, or the parameter that is the key of an optimizer's state."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        key = _reached(node, namespace)
    if not is_tensor(key):
        raise LookupError(f"[{ast.unparse(node)}] is not a constant key")
    return key

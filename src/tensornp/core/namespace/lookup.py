"""Find the object of a name such as ``model.fc.weight`` or ``d['a'][0]``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.core.tensor.paths import shortened
from tensornp.errors import BadRequestError


class NotLookedAtError(BadRequestError):
    """A gradient must not be read now: another thread runs a backward."""


def look_up(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return the object of an access expression: names, attributes and constant keys."""
    try:
        with modes.outside_modes():
            return _reached(ast.parse(expression.strip(), mode="eval").body, namespace)
    except BadRequestError:
        raise
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        reason = "that is no name"
    except Exception as error:
        reason = str(error.args[0]) if error.args else type(error).__name__
    raise BadRequestError(f"{shortened(expression)} cannot be watched ({reason}); name a tensor")


def _reached(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(name):
            if name not in namespace:
                raise LookupError(f"name {name!r} is not defined")
            return namespace[name]
        case ast.Attribute(holder, name):
            held = _reached(holder, namespace)
            if is_tensor(held) and name == "grad":
                unguarded = Unguarded()
                grad = unguarded.grad_of(held)
                if unguarded.left_out:
                    raise NotLookedAtError(f"{NOT_LOOKED_AT}; watch it once that has ended")
                return grad
            if is_tensor(held) or is_array(held):
                return vars(held)[name]
            if isinstance(inspect.getattr_static(type(held), name, None), property):
                # A parametrized weight is computed at each access, and some parametrizations change their state.
                raise LookupError(f".{name} is computed at each access")
            return getattr(held, name)
        case ast.Subscript(holder, key):
            held = _reached(holder, namespace)
            if is_tensor(held) or is_array(held):
                raise LookupError(f"{ast.unparse(node)} is a part of a tensor")
            try:
                return held[ast.literal_eval(key)]
            except ValueError:
                # A parameter is the key of an optimizer's state.
                found = _reached(key, namespace)
            if not is_tensor(found):
                raise LookupError(f"[{ast.unparse(key)}] is not a constant key")
            return held[found]
    raise BadRequestError(
        f"{ast.unparse(node)} would have to be run; use names, attributes and constant keys: model.fc.weight"
    )

"""What a name such as ``model.fc.weight`` or ``d['a'][0]`` stands for, found where a search finds it: nothing runs."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import own_attributes
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.core.namespace.members import in_module, members_of
from tensornp.core.tensor.containers import items_of, kept_in
from tensornp.errors import BadRequestError

_PLAIN_KEYS = (str, int, float, complex, bool, bytes, type(None))
_MAX_SHOWN = 80
"""Characters of an expression that an error shows."""
_TABLES = {"get_parameter": "_parameters", "get_buffer": "_buffers", "get_submodule": "_modules"}


class NotLookedAtError(BadRequestError):
    """What a name reaches must not be read now: a gradient, while another thread runs."""


def look_up(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return what `expression` reaches by names, attributes and constant keys, as `%tensors` and cards write them.

    An attribute is what an object itself or its class holds, a key is one of a dict, a list, a tuple, a deque or a
    module; no property, no `__getattr__` and no `__getitem__` runs.

    Raises
    ------
    BadRequestError
        If there is nothing of that name, or something would have to run.
    """
    try:
        return _reached(ast.parse(expression.strip(), mode="eval").body, namespace)
    except BadRequestError:
        raise
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        reason = "that is no name"
    except LookupError as error:
        reason = str(error.args[0])
    shown = expression if len(expression) <= _MAX_SHOWN else f"{expression[:_MAX_SHOWN]}…"
    raise BadRequestError(f"{shown} cannot be watched ({reason}); name a tensor")


def _reached(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    steps: list[Any] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            steps.append(node)
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TABLES:
            # So a member of a module is written whose name is no identifier.
            steps.append(node)
            node = node.func.value
        else:
            raise BadRequestError(
                f"{ast.unparse(node)} would have to be run after each cell; "
                "watch names, with attributes and constant keys: model.fc.weight, d['a'][0]"
            )
    if node.id not in namespace:
        raise LookupError(f"name {node.id!r} is not defined")
    obj = namespace[node.id]
    while steps:
        step = steps.pop()
        if isinstance(step, ast.Attribute) and step.attr == "__dict__" and steps:
            # And so an attribute of such a name.
            step = steps.pop()
        obj = _after(obj, step, namespace)
    return obj


def _after(obj: Any, step: Any, namespace: Mapping[str, Any]) -> Any:
    """Return what one step leads to from `obj`."""
    is_tensor = issubclass(type(obj), torch.Tensor) or issubclass(type(obj), np.ndarray)
    if isinstance(step, ast.Attribute):
        found = _attributes(obj, step.attr)
    elif isinstance(step, ast.Call):
        found = _members(obj, step)
    elif isinstance(step.value, ast.Attribute) and step.value.attr == "__dict__":
        found = _own(obj, _key(step.slice, namespace))
    else:
        found = _items(obj, _key(step.slice, namespace)) if not is_tensor or _holds_objects(obj) else iter(())
    for value in found:
        return value
    if is_tensor:
        text = ast.unparse(step)
        raise BadRequestError(f"{text} gives a new object each time; name the tensor that it is made of")
    raise LookupError(f"{ast.unparse(step)} is not kept there, and no property or method is run")


def _own(obj: Any, name: Any) -> Iterator[Any]:
    return (value for own, value in own_attributes(obj) if _is_same(name, own))


def _attributes(obj: Any, name: str) -> Iterator[Any]:
    """Yield what an object, its tables if it is a module, its fields if it is a tuple, and its class hold by a name."""
    cls = type(obj)
    is_class = issubclass(cls, type)
    if name == "grad" and issubclass(cls, torch.Tensor):
        unguarded = Unguarded()
        with modes.outside_modes():
            grad = unguarded.grad_of(obj)
        if unguarded.left_out:
            raise NotLookedAtError(f"{NOT_LOOKED_AT}; watch it once that has ended")
        yield grad
    if not is_class:
        yield from _own(obj, name)
    if issubclass(cls, torch.nn.Module):
        tables = (table for held in _TABLES.values() for table in _own(obj, held))
        yield from (child for table in tables for own, child in members_of(table) if _is_same(name, own))
    if issubclass(cls, tuple):
        fields = zip(vars(cls).get("_fields", ()), tuple.__iter__(obj), strict=False)
        yield from (value for own, value in fields if _is_same(name, own))
    for base in (obj if is_class else cls).__mro__:
        for own, value in vars(base).items():
            # What has this method computes the attribute, or binds it to the object.
            if _is_same(name, own) and not any("__get__" in vars(kind) for kind in type(value).__mro__):
                yield value


def _items(obj: Any, key: Any) -> Iterator[Any]:
    """Yield what a container or a module holds under a key."""
    cls = type(obj)
    for base in (list, tuple, deque):
        if issubclass(cls, base) and type(key) is int and -base.__len__(obj) <= key < base.__len__(obj):
            yield base.__getitem__(obj, key)
    if issubclass(cls, dict):
        yield from [value for own, value in items_of(obj) if _is_same(key, own)]
    elif torch_private.is_scripted_table(obj):
        yield from (child for own, child in members_of(obj) if _is_same(key, own))
    elif issubclass(cls, torch.nn.Module):
        yield from _module_items(obj, key)
    elif _holds_objects(obj):
        index = key if type(key) is tuple else (key,)
        if len(index) == np.ndarray.ndim.__get__(obj) and all(type(i) is int for i in index):
            yield np.ndarray.item(obj, *index)
    elif table := kept_in(cls):
        yield from (value for kept in _own(obj, table) for value in _items(kept, key))


def _module_items(module: Any, key: Any) -> Iterator[Any]:
    steps = [(step, child) for step, child, _ in in_module(module)]
    if type(key) is int:
        key += sum(type(step) is str and step.startswith("[") for step, _ in steps) if key < 0 else 0
        yield from (child for step, child in steps if type(step) is str and step == f"[{key}]")
    else:
        yield from (child for step, child in steps if type(step) is tuple and _is_same(key, step[0]))


def _holds_objects(obj: Any) -> bool:
    """Return whether `obj` is an array of objects, of which each item is one."""
    return issubclass(type(obj), np.ndarray) and np.ndarray.dtype.__get__(obj).kind == "O"


def _members(module: Any, call: ast.Call) -> Iterator[Any]:
    """Yield the member of a module that ``get_parameter('name')`` would give."""
    getter: Any = call.func
    if len(call.args) == 1 and not call.keywords and issubclass(type(module), torch.nn.Module):
        name = _key(call.args[0], {})
        tables = _own(module, _TABLES[getter.attr])
        yield from (child for table in tables for own, child in members_of(table) if _is_same(name, own))


def _key(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """Return a constant key, or the parameter that is the key of an optimizer's state."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        key = _reached(node, namespace)
    if not issubclass(type(key), torch.Tensor):
        raise LookupError(f"[{ast.unparse(node)}] is no constant key")
    return key


def _is_same(key: Any, other: Any) -> bool:
    """Return whether a key is the one that was asked for; neither hash nor equality of a class of the user's runs."""
    if type(key) is tuple:
        others = list(tuple.__iter__(other)) if issubclass(type(other), tuple) else None
        return others is not None and len(key) == len(others) and all(map(_is_same, key, others))
    equals: Any = type(key).__eq__
    return key is other or (type(key) in _PLAIN_KEYS and equals(key, other) is True)

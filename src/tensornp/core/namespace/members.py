"""List what containers, modules and other objects hold, and the step to each item."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, cast

import numpy as np
import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import descriptors_of, own_attributes
from tensornp.core.tensor.containers import BUILT_IN, Container, items_of, kept_in
from tensornp.core.tensor.paths import Kind, is_attribute_name, key_text

_AT_ONCE = 16
"""Items that are checked together for plain values."""
_FOREIGN = frozenset(
    "IPython ipykernel ipywidgets anywidget tensornp traitlets zmq logging threading asyncio concurrent "
    "matplotlib multiprocessing subprocess weakref inspect importlib".split()
)
"""Packages whose objects are skipped: they reach the whole kernel."""
_MODULE_OWN = frozenset(vars(torch.nn.Module()))
_TABLES: dict[str, Kind] = {"_parameters": "parameter", "_buffers": "buffer", "_modules": ""}
_TRACED = "_actual_script_module"
_BY_INDEX = (torch.nn.ModuleList, torch.nn.ParameterList)
_BY_KEY = (torch.nn.ModuleDict, torch.nn.ParameterDict)


Visitor = Callable[[Any], Iterable[tuple[Any, Any, Kind]]]
IS_TENSOR, IS_ARRAY = cast(Visitor, "tensor"), cast(Visitor, "array")
"""In place of the visitor of a class that is not searched."""


def visitor_for(cls: type) -> Visitor | None:
    if cls in _ATOMS:
        return None
    if issubclass(cls, torch.Tensor):
        return IS_TENSOR
    if issubclass(cls, np.ndarray):
        return IS_ARRAY
    visitor = next((one for base, one in _CONTAINERS.items() if issubclass(cls, base)), None)
    if issubclass(cls, torch.nn.Module):
        visitor = _in_module
    elif visitor is None and not issubclass(cls, type) and cls.__module__.partition(".")[0] not in _FOREIGN:
        # Anything with attributes of its own may hold a tensor.
        visitor = _in_object if descriptors_of(cls) else None
    return visitor


_ATOMS = frozenset((
    int, float, complex, str, bytes, bool, type(None), types.ModuleType, types.FunctionType, types.BuiltinFunctionType,
    types.MethodType, types.CodeType, types.FrameType, types.TracebackType, torch.Size, torch.dtype, torch.device,
))  # fmt: skip


def _in_container(container: Container) -> Visitor:
    items, step = container

    def visit(obj: Any) -> Iterator[tuple[Any, Any, Kind]]:
        children = items(obj)
        while some := list(itertools.islice(children, _AT_ONCE)):
            if _ATOMS.issuperset(map(type, map(itemgetter(1), some))):
                # One for all of them, at which the search asks how late it is.
                yield "", None, ""
            else:
                yield from ((step(key), value, "") for key, value in some)

    return visit


_CONTAINERS: dict[type, Visitor] = {base: _in_container(container) for base, container in BUILT_IN.items()}
in_dict = _CONTAINERS[dict]


def _in_module(module: Any) -> Iterator[tuple[Any, Any, Kind]]:
    yield from registered(module)
    yield from ((step, child, "") for step, child in unregistered(module))


def unregistered(module: Any) -> Iterator[tuple[Any, Any]]:
    for name, child in items_of(object.__getattribute__(module, "__dict__")):
        if name not in _MODULE_OWN and name != _TRACED:
            yield _own_attribute(name), child


def registered(module: Any) -> Iterator[tuple[Any, Any, Kind]]:
    return ((step, child, kind) for _, step, child, kind in registered_names(module) if child is not None)


def registered_names(module: Any) -> Iterator[tuple[str, Any, Any, Kind]]:
    """Yield the name, step, object and kind of each registered member, None included."""
    held = object.__getattribute__(module, "__dict__")
    if "_parameters" not in held and _TRACED in held:
        # A traced module forwards every attribute.
        held = object.__getattribute__(held[_TRACED], "__dict__")
    is_dict, is_list = isinstance(module, _BY_KEY), isinstance(module, _BY_INDEX)
    is_row = isinstance(module, torch.nn.Sequential)
    for table, kind in _TABLES.items():
        for i, (key, child) in enumerate(members_of(held.get(table))):
            # A key put there by hand may be a number, or of a subclass of str.
            name = str.__str__(key) if issubclass(type(key), str) else str(key)
            if is_row and kind == "":
                # An index counts members, whatever their names.
                step: Any = f"[{i}]"
            elif is_dict and (kind == "" or isinstance(module, torch.nn.ParameterDict)):
                step = (name,)
            elif is_list and name.isdecimal():
                step = f"[{name}]"
            else:
                # A name may be any text.
                step = f".{name}" if is_attribute_name(name) else f".{table}[{key!r}]"
            yield name, step, child, kind


def members_of(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the items of one table of a module; a scripted module keeps its own in C++."""
    if not isinstance(table, torch_private.ScriptedTable):
        return items_of(table) if issubclass(type(table), dict) else iter(())
    own = dict(own_attributes(table))
    # Submodules with a Python object are in a dictionary.
    return items_of(own["_python_modules"]) if "_python_modules" in own else iter(own["_c"].items())


def _own_attribute(name: Any) -> str:
    """Return the step to an attribute; its name may be any text."""
    return f".{name}" if is_attribute_name(name) else f".__dict__[{key_text(name)}]"


def _in_object(obj: Any) -> Iterator[tuple[Any, Any, Kind]]:
    """Yield the attributes of an object; those of a known mapping are its items."""
    table = kept_in(type(obj))
    for name, child in own_attributes(obj):
        if name == table and issubclass(type(child), dict):
            yield from in_dict(child)
        else:
            yield _own_attribute(name), child, ""

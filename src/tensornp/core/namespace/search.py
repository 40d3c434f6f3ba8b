"""Search a namespace for tensors and arrays, nearest first, in bounded time; no code of the user runs."""

from __future__ import annotations

import itertools
import re
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, cast

import numpy as np
import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import descriptors_of, own_attributes
from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.tensor.containers import BUILT_IN, Container, items_of, kept_in
from tensornp.core.tensor.paths import Kind, Path, expression_of, is_attribute_name, key_text

_AT_ONCE = 16
"""Items that are checked together for plain values."""
_FOREIGN = frozenset(
    "IPython ipykernel ipywidgets anywidget tensornp traitlets zmq logging threading asyncio concurrent "
    "matplotlib multiprocessing subprocess weakref inspect importlib "
    "_frozen_importlib _frozen_importlib_external".split()
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
    return itertools.chain(registered(module), unregistered(module))


def unregistered(module: Any) -> Iterator[tuple[Any, Any, Kind]]:
    for name, child in items_of(object.__getattribute__(module, "__dict__")):
        if name not in _MODULE_OWN and name != _TRACED:
            yield _own_attribute(name), child, ""


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
    return f".{name}" if is_attribute_name(name) else f".__dict__[{key_text(name)}]"


def _in_object(obj: Any) -> Iterator[tuple[Any, Any, Kind]]:
    table = kept_in(type(obj))
    for name, child in own_attributes(obj):
        if name == table and issubclass(type(child), dict):
            yield from in_dict(child)
        else:
            yield _own_attribute(name), child, ""


_CHECK_EVERY = 64
_TURN = 512
_RESULT = re.compile(r"_{1,3}|_\d+")
_OF_IPYTHON = re.compile(r"In|_[iod]h|_{1,3}|_i{1,3}|_i*\d+|exit|quit|open|get_ipython")
_requires_grad, _is_leaf, _retains_grad = (
    getattr(torch.Tensor, name).__get__ for name in ("requires_grad", "is_leaf", "retains_grad")
)
_Children = Iterator[tuple[Any, Any, Kind]]
_Turn = tuple[Path | None, _Children]
"""The path of a holder, and the rest of its children."""
Visit = Callable[[Any, Kind, Path], None]
"""Takes each tensor and array, its kind and the path to it."""


class Search:
    """One search of a namespace and its result; the constructor searches.

    Names at hand come first, then what they hold, level by level and in turns, for `max_seconds` of this thread's own
    time. `tracked` are the tensors that autograd has computed; `stopped` is a sentence if the search is incomplete, and
    `left_out` if gradients were not read.
    """

    def __init__(self, namespace: Mapping[str, Any], max_seconds: float, visit: Visit) -> None:
        self.tracked: list[torch.Tensor] = []
        self._num_names = 0
        self._keys: dict[int, Path] = {}
        self._unguarded = Unguarded()
        self._visit = visit
        self._seen: set[int] = set()
        self._skipped = False
        is_complete = self._run(namespace, max_seconds) and not self._skipped
        self.stopped = "" if is_complete else f"search stopped at {self._num_names:,} names"
        self.left_out = NOT_LOOKED_AT if self._unguarded.left_out else ""

    def name(self, path: Path) -> str:
        """Return the expression of a path; a parameter as a key is named."""
        return expression_of(path, self._keys)

    def _run(self, namespace: Mapping[str, Any], max_seconds: float) -> bool:
        deadline = time.thread_time() + max_seconds
        visitors: dict[type, Visitor | None] = {}
        history = history_name(namespace)
        holders: set[int] = {id(namespace)}
        # Holders take turns, so that a huge one does not hide the others.
        turns: deque[_Turn] = deque()
        path, limit = None, sys.maxsize
        children: _Children = iter(_roots(namespace, history))
        # The results of cells come last: the user's own names are better.
        last = []
        if history:
            holders.add(id(namespace["_oh"]))
            last.append(((None, history), self._children_of(namespace["_oh"], in_dict)))
        while True:
            for _ in range(limit):
                try:
                    found = next(children, None)
                except Exception:
                    # Another thread changes it, or a class of C hides its members.
                    self._skipped, found = True, None
                if found is None:
                    break
                step, obj, kind = found
                self._num_names += 1
                if not self._num_names % _CHECK_EVERY and time.thread_time() > deadline:
                    return False
                cls = type(obj)
                if cls not in visitors:
                    visitors[cls] = visitor_for(cls)
                visitor = visitors[cls]
                if visitor is None:
                    continue
                if visitor is IS_TENSOR or visitor is IS_ARRAY:
                    self._meet(obj, kind, (path, step), is_tensor=visitor is IS_TENSOR)
                elif id(obj) not in holders:
                    holders.add(id(obj))
                    turns.append(((path, step), self._children_of(obj, visitor)))
            else:
                turns.append((path, children))
            if not turns and last:
                turns.append(last.pop())
            if not turns or time.thread_time() > deadline:
                return not turns
            (path, children), limit = turns.popleft(), _TURN

    def _children_of(self, holder: Any, visit: Visitor) -> _Children:
        try:
            return iter(visit(holder))
        except Exception:
            self._skipped = True
            return iter(())

    def _meet(self, obj: Any, kind: Kind, path: Path, *, is_tensor: bool) -> None:
        """Visit a tensor or an array, and what belongs to it."""
        if not is_tensor:
            self._visit(obj, "array", path)
            return
        kind = kind or ("parameter" if issubclass(type(obj), torch.nn.Parameter) else "tensor")
        if kind == "parameter":
            self._keys.setdefault(id(obj), path)
        self._visit(obj, kind, path)
        if type(obj) is not torch.Tensor or _requires_grad(obj):
            for found in self._beside(obj, path):
                self._visit(*found)

    def _beside(self, tensor: Any, path: Path) -> Iterator[tuple[Any, Kind, Path]]:
        """Yield the gradient of a tensor, and the tensors in its attributes, when it is met first."""
        if id(tensor) in self._seen:
            return
        self._seen.add(id(tensor))
        try:
            if _requires_grad(tensor):
                is_leaf = _is_leaf(tensor)
                if not is_leaf:
                    self.tracked.append(tensor)
                grad = self._unguarded.grad_of(tensor) if is_leaf or _retains_grad(tensor) else None
                if grad is not None:
                    yield grad, "grad", (path, ".grad")
            for name, inner in () if is_of_torch(tensor) else own_attributes(tensor):
                if issubclass(type(inner), torch.Tensor):
                    yield inner, "tensor", (path, f".{name}")
        except Exception:
            # Some wrappers have no such attributes, and lazy parameters have none yet.
            return


def _roots(namespace: Any, history: str) -> list[tuple[Any, Any, Kind]]:
    results = set(map(id, list(namespace["_oh"].values()))) if history else ()
    found: list[tuple[Any, Any, Kind]] = []
    for name, value in items_of(namespace) if isinstance(namespace, dict) else list(namespace.items()):
        # `_` and `_3` are the user's unless they are results of cells: after `for _ in ...`.
        is_history = history and _OF_IPYTHON.fullmatch(name)
        if not is_history or (_RESULT.fullmatch(name) and id(value) not in results):
            found.append((name, value, ""))
    return found


def history_name(namespace: Mapping[str, Any]) -> str:
    """Return the name of the results that IPython keeps: ``Out`` or ``_oh``; empty without IPython."""
    outputs = namespace.get("_oh")
    if not issubclass(type(outputs), dict):
        return ""
    return "Out" if namespace.get("Out") is outputs else "_oh"

"""A search through a namespace for tensors and arrays: their names, nearest first, in bounded time.

Nothing of the user's runs: no property, no `__getattr__`, no iterator of a subclass. What an object holds is read from
its own dictionary and slots alone.
"""

from __future__ import annotations

import array
import itertools
import keyword
import mmap
import re
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.containers import key_text
from tensornp.core.holding import STORAGES
from tensornp.core.instances import copied, has_attributes, in_chunks, is_subclass, own_attributes

Kind = str
"""One of "tensor", "array", "parameter", "buffer", "grad"."""
Path = tuple[Any, Any]
"""The path to what holds an object, or None, and the last step: text, or a `_Key`."""
MAX_CHILDREN = 1_000_000
"""Items of one container that are looked at."""
_CHECK_EVERY = 64
_TURN = 512
_BUFFERS = frozenset(map(id, (memoryview, bytearray, array.array, mmap.mmap)))
"""By identity, as all classes here: to look for one in a tuple would ask a metaclass of the user's for equality."""
_FOREIGN = frozenset(
    "IPython ipykernel ipywidgets anywidget tensornp traitlets zmq logging threading asyncio concurrent "
    "matplotlib multiprocessing subprocess weakref inspect importlib".split()
)
"""Packages whose objects are not looked into: they reach the whole kernel, and no user thinks of them as holders."""
_MODULE_OWN = frozenset(vars(torch.nn.Module()))
"""What every module holds: three dictionaries of what it consists of, flags and hooks."""
_BY_INDEX, _BY_KEY = ("ModuleList", "ParameterList"), ("ModuleDict", "ParameterDict")
_RESULT = re.compile(r"_{1,3}|_\d+")


Place = tuple[Any, Kind, Path]
"""One tensor or array that was found, its kind, and the way to it."""


class _Key(NamedTuple):
    """A dictionary key, written out only where the name is asked for."""

    key: Any


class Search:
    """The tensors and arrays that a namespace reaches: iterate over it once, then ask how far it came.

    Parameters
    ----------
    namespace : mapping of str to object
    max_seconds : float
        After which it stops; names at hand come first, then what they hold, level by level and in turns.

    Attributes
    ----------
    num_names : int
        Tensors, arrays and other objects that were looked at so far.
    is_complete : bool
        Whether it looked at everything, once the iteration has ended.
    tracked : list of torch.Tensor
        Those that autograd has computed, found so far.
    """

    def __init__(self, namespace: Mapping[str, Any], max_seconds: float) -> None:
        self.num_names = 0
        self.is_complete = False
        self.tracked: list[torch.Tensor] = []
        self._roots_with_grads: set[str] = set()
        self._namespace = namespace
        self.max_seconds = max_seconds
        self._skipped = False
        self._links: set[tuple[str, str]] = set()

    def has_grads_below(self, root: str) -> bool:
        """Return whether a gradient was found below a name, or below another one for something that it holds."""
        return any(name in self._roots_with_grads for name in (root, *(b for a, b in self._links if a == root)))

    def __iter__(self) -> Iterator[Place]:
        deadline = time.perf_counter() + self.max_seconds
        # By identity: a metaclass of the user's may compute hashes, or have none. The class is held, so that it stays.
        visitors: dict[int, tuple[type, _Visitor | None, Kind]] = {}
        seen: set[int] = set()
        holders: dict[int, str] = {}
        # Holders take turns, so that a huge one does not hide the others; the names at hand come first.
        turns: deque[Iterator[tuple[Path, Any, Kind]]] = deque()
        turn, limit = self._children(self._namespace, None, _roots), sys.maxsize
        while True:
            count = 0
            for path, obj, kind in itertools.islice(turn, limit):
                count += 1
                self.num_names += 1
                if not self.num_names % _CHECK_EVERY and time.perf_counter() > deadline:
                    return
                cls = type(obj)
                try:
                    _, visitor, tensor_kind = visitors[id(cls)]
                except KeyError:
                    visitor = _visitor_for(cls)
                    tensor_kind = "parameter" if is_subclass(cls, torch.nn.Parameter) else "tensor"
                    visitors[id(cls)] = cls, visitor, tensor_kind
                if visitor is None:
                    continue
                if visitor is _TENSOR:
                    yield obj, kind or tensor_kind, path
                    if cls is not torch.Tensor or _requires_grad(obj):
                        yield from self._beside(obj, path, is_new=id(obj) not in seen)
                        seen.add(id(obj))
                elif visitor is _ARRAY:
                    yield obj, "array", path
                elif id(obj) not in holders:
                    holders[id(obj)] = root_of(path)
                    turns.append(self._children(obj, path, visitor))
                else:
                    self._links.add((root_of(path), holders[id(obj)]))
            if count == limit:
                turns.append(turn)
            if not turns or time.perf_counter() > deadline:
                self.is_complete = not turns and not self._skipped
                return
            turn, limit = turns.popleft(), _TURN

    def _beside(self, tensor: Any, path: Path, *, is_new: bool) -> Iterator[Place]:
        """Yield the gradient of a tensor, and the tensors in which one of another class holds its values, once."""
        try:
            if _requires_grad(tensor):
                is_leaf = _is_leaf(tensor)
                if not is_leaf and is_new:
                    self.tracked.append(tensor)
                grad = _grad(tensor) if is_leaf or _retains_grad(tensor) else None
                if grad is not None:
                    self._roots_with_grads.add(root_of(path))
                    if is_new:
                        yield grad, "grad", (path, ".grad")
            if is_new and type(tensor) not in _PLAIN:
                for name, inner in own_attributes(tensor):
                    if is_subclass(type(inner), torch.Tensor):
                        yield inner, "tensor", (path, f".{name}")
        except Exception:
            # Some wrappers have no such attributes, and lazy parameters have none yet.
            return

    def _children(self, holder: Any, path: Path | None, visit: _Visitor) -> Iterator[tuple[Path, Any, Kind]]:
        count = 0
        try:
            for step, child, kind in visit(holder):
                count += 1
                yield (path, step), child, kind
            self._skipped |= count >= MAX_CHILDREN
        except Exception:
            # Another thread changes it just now, or a class of C hides what it holds.
            self._skipped = True


def _roots(namespace: Any) -> Iterator[tuple[Any, Any, Kind]]:
    """Yield the names that are the user's: the history of IPython is reached by its own name, `Out`."""
    outputs = namespace.get("_oh")
    results = copied(lambda: {id(value) for value in dict.values(outputs)}) if isinstance(outputs, dict) else set()
    for name, value in _items(namespace) if isinstance(namespace, dict) else list(namespace.items()):
        # `_` and `_3` are the user's where they are no result of a cell: after `for _ in ...`.
        is_history = outputs is not None and is_history_name(name)
        if not is_history or (_RESULT.fullmatch(name) and id(value) not in results):
            yield name, value, ""


def is_history_name(name: str) -> bool:
    """Return whether IPython itself binds `name`: what a cell gave or said is reached as ``Out[n]`` and ``In[n]``."""
    return name in ("In", "_ih", "_oh", "_dh", "_", "__", "___", "exit", "quit", "open", "get_ipython") or (
        (name.startswith("_") and name[1:].lstrip("i").isdecimal()) or name in ("_i", "_ii", "_iii")
    )


def name_of(path: Path, keys: Mapping[int, Path] | None = None) -> str:
    """Return the expression that reaches what lies at `path`: ``model.fc.weight``, ``Out[3]["a"]``.

    `keys` gives the paths of parameters by identity, since those are keys of an optimizer's state.
    """
    steps = []
    at: Any = path
    while at is not None:
        at, step = at
        steps.append(f"[{_key_text(step.key, keys or {})}]" if type(step) is _Key else step)
    return "".join(reversed(steps))


def _key_text(key: Any, keys: Mapping[int, Path]) -> str:
    return name_of(keys[id(key)]) if id(key) in keys else key_text(key)


def root_of(path: Path) -> str:
    """Return the name with which `path` begins."""
    while path[0] is not None:
        path = path[0]
    return str(path[1])


_Visitor = Callable[[Any], Iterable[tuple[Any, Any, Kind]]]


def _TENSOR(_: Any) -> Iterable[tuple[Any, Any, Kind]]:
    return ()


def _ARRAY(_: Any) -> Iterable[tuple[Any, Any, Kind]]:
    return ()


def _visitor_for(cls: type) -> _Visitor | None:
    """Return what lists the children of an instance of `cls`, or None where there is nothing to look for."""
    if is_subclass(cls, torch.Tensor) or id(cls) in _STORAGES:
        return _TENSOR
    if is_subclass(cls, np.ndarray) or id(cls) in _BUFFERS:
        return _ARRAY
    for base, visitor in _CONTAINERS.items():
        if is_subclass(cls, base):
            return visitor
    if is_subclass(cls, torch.nn.Module):
        return _in_module
    module = str(type.__getattribute__(cls, "__module__")).partition(".")[0]
    if is_subclass(cls, type) or id(cls) in _ATOMS or module in _FOREIGN:
        return None
    return _in_object if has_attributes(cls) else None


_ATOMS = frozenset(map(id, (
    int, float, complex, str, bytes, bool, type(None), types.ModuleType, types.FunctionType, types.BuiltinFunctionType,
    types.MethodType, types.CodeType, types.FrameType, types.TracebackType, torch.Size, torch.dtype, torch.device,
)))  # fmt: skip
_STORAGES = frozenset(map(id, STORAGES))


_PLAIN = (torch.Tensor, torch.nn.Parameter)
_requires_grad, _is_leaf, _retains_grad, _grad = (
    getattr(torch.Tensor, name).__get__ for name in ("requires_grad", "is_leaf", "retains_grad", "grad")
)


def _items(held: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the items as `dict` itself has them, whatever a subclass makes of them.

    RuntimeError if a huge one grows meanwhile.
    """
    return in_chunks(iter(dict.items(held)))


def _in_dict(obj: Any) -> Iterator[tuple[Any, Any, Kind]]:
    return ((_Key(key), value, "") for key, value in _items(obj))


def _in_sequence(base: Any) -> _Visitor:
    def visit(obj: Any) -> Iterator[tuple[Any, Any, Kind]]:
        children = copied(lambda: list(itertools.islice(base.__iter__(obj), MAX_CHILDREN)))
        fields: Any = type.__getattribute__(type(obj), "__dict__").get("_fields") if base is tuple else None
        if isinstance(fields, tuple) and len(fields) == len(children):
            return ((f".{field}", child, "") for field, child in zip(fields, children, strict=True))
        return ((f"[{i}]", child, "") for i, child in enumerate(children))

    return visit


def _in_set(base: Any) -> _Visitor:
    def visit(obj: Any) -> Iterator[tuple[Any, Any, Kind]]:
        return (("{…}", child, "") for child in in_chunks(base.__iter__(obj)))

    return visit


_CONTAINERS: dict[type, _Visitor] = {
    dict: _in_dict,
    list: _in_sequence(list),
    tuple: _in_sequence(tuple),
    deque: _in_sequence(deque),
    set: _in_set(set),
    frozenset: _in_set(frozenset),
}


def _in_module(module: Any) -> Iterator[tuple[Any, Any, Kind]]:
    """Yield what a `torch.nn.Module` consists of, by the names that its users type."""
    held = object.__getattribute__(module, "__dict__")
    mro = type(module).__mro__
    is_dict, is_list = (any(cls.__name__ in names for cls in mro) for names in (_BY_KEY, _BY_INDEX))
    is_row = any(cls.__name__ == "Sequential" for cls in mro)
    is_scripted = isinstance(held.get("_modules"), torch.jit._script.OrderedDictWrapper)
    for table, kind in (("_parameters", "parameter"), ("_buffers", "buffer"), ("_modules", "")):
        for i, (name, child) in enumerate(_members(held.get(table))):
            if child is None:
                continue
            if is_row and kind == "":
                # Its members are counted, whatever their names.
                step: Any = f"[{i}]"
            elif is_dict and (kind == "" or isinstance(module, torch.nn.ParameterDict)):
                step = _Key(name)
            elif is_list and name.isdecimal():
                step = f"[{name}]"
            elif is_scripted and not _is_plain(name):
                # It has no `get_submodule`.
                step = f".{table}[{name!r}]"
            else:
                step = _attribute(name, kind or "submodule")
            yield step, child, kind
    for name, child in _items(held):
        if name not in _MODULE_OWN:
            yield _own_attribute(name), child, ""


def _members(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the items of one table of a module; a scripted module keeps its own in C++."""
    if not isinstance(table, torch.jit._script.OrderedDictWrapper):
        return _items(table or {})
    own = dict(own_attributes(table))
    # Those of its submodules that have a Python object have it in a dictionary beside.
    return _items(own["_python_modules"]) if "_python_modules" in own else iter(own["_c"].items())


def _attribute(name: str, kind: str) -> str:
    """Return how a member of a module is reached, whose name may be any text."""
    return f".{name}" if _is_plain(name) else f".get_{kind}({name!r})"


def _own_attribute(name: Any) -> str:
    """Return how an attribute is reached, whose name `setattr` takes as any text."""
    return f".{name}" if _is_plain(name) else f".__dict__[{key_text(name)}]"


def _is_plain(name: Any) -> bool:
    return type(name) is str and name.isidentifier() and not keyword.iskeyword(name)


def _in_object(obj: Any) -> Iterator[tuple[Any, Any, Kind]]:
    return ((_own_attribute(name), child, "") for name, child in own_attributes(obj))

"""The tensors in what a call got or gave: in containers, and in what objects have as attributes.

A distribution has its parameters so, and a cache its keys and values. Nothing of them runs, and what hides is noted.
"""

from __future__ import annotations

import gc
import types
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.lowlevel.attributes import is_tensor, own_attributes
from tensornp.core.tensor.containers import LEAVES, container_of, leaves
from tensornp.core.tensor.form import STORAGES
from tensornp.core.tensor.paths import PLAIN_CLASSES, Path
from tensornp.passes.records import NOT_LOOKED_INTO

_MOST_LEAVES = 10_000
"""Values of an argument, in containers, that are looked at."""
_MOST_OBJECTS = 1_000
"""Objects among these that are looked into."""
_MOST_INSIDE, _MOST_TENSORS = 1_000, 64
"""Values of one object that are looked at, but for plain ones, and tensors among them."""
_MOST_IN_PASS, _COST_OF_OBJECT = 20_000, 20
"""Values of all objects in one pass, plain ones too, and as how many each object counts."""
_HIDING = (*STORAGES, torch.ScriptObject)
_CODE = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, torch.nn.Module,
    torch.optim.Optimizer,
)  # fmt: skip
"""What runs, and what has weights: no value of a call."""


class Found(NamedTuple):
    """A tensor and the path to it; of what cannot be looked into, none, and what is to be said of it."""

    path: Path | None
    tensor: torch.Tensor | None
    is_in_object: bool = False
    note: str = ""


class LooksInside:
    """Looks into what calls of one pass get and give; into objects as long as a small part of a second may take."""

    def __init__(self) -> None:
        self._num_left = _MOST_IN_PASS
        self._holding: set[int] = set()

    def tensors_in(self, tree: Any, *, is_inner: bool = False) -> list[Found]:
        """Return the tensors in arguments or in a result, behind them what may hold others.

        What an object holds is read with the outermost call that gets it, or gives it; of one that `is_inner`, it is
        only said that it is not looked into again.
        """
        if is_tensor(tree):
            return [Found(None, tree)]
        if type(tree) is tuple and len(tree) == 1 and is_tensor(tree[0]):
            return [Found((None, "[0]"), tree[0])]
        found, walk = [], leaves(tree)
        objects = []
        for path, leaf in islice(walk, _MOST_LEAVES):
            if is_tensor(leaf):
                found.append(Found(path, leaf))
            elif id(type(leaf)) not in PLAIN_CLASSES and _may_hold(leaf):
                objects.append((path, leaf))
                if len(objects) > _MOST_OBJECTS:
                    break
        is_cut = next(walk, None) is not None
        for path, leaf in objects[:_MOST_OBJECTS]:
            if is_cut := is_cut or self._num_left <= 0:
                break
            is_known = is_inner and id(leaf) in self._holding
            inside = [_not_looked_into(path, leaf)] if is_known else list(self._inside(path, leaf))
            if inside:
                self._holding.add(id(leaf))
            found += inside
        if is_cut:
            found.append(_not_looked_into(None, tree))
        return sorted(found, key=lambda one: one.tensor is None) if objects else found

    def _inside(self, path: Path | None, obj: Any) -> Iterator[Found]:
        """Yield the tensors of an object, the nearest first."""
        waiting, seen, num_left, num_tensors = deque([(path, obj)]), {id(obj)}, _MOST_INSIDE, 0
        while waiting:
            at, one = waiting.popleft()
            self._num_left -= _COST_OF_OBJECT
            try:
                own = {} if _is_code(one) else dict(own_attributes(one))
                is_hiding = _is_code(one) or _is_hiding(one, own)
            except Exception:
                # Another thread changes it just now, or it is broken.
                own, is_hiding = {}, True
            if is_hiding:
                yield _not_looked_into(at, one)
            for name, value in own.items():
                step = at, f".{name}"
                for below, leaf in [(step, value)] if id(type(value)) in LEAVES else leaves(value, step):
                    self._num_left -= 1
                    num_left -= id(type(leaf)) not in PLAIN_CLASSES
                    num_tensors += is_tensor(leaf)
                    if num_left <= 0 or self._num_left <= 0 or num_tensors > _MOST_TENSORS:
                        yield _not_looked_into(path, obj)
                        return
                    if is_tensor(leaf):
                        yield Found(below, leaf, is_in_object=True)
                    elif id(leaf) not in seen and _may_hold(leaf):
                        seen.add(id(leaf))
                        waiting.append((below, leaf))


def _not_looked_into(path: Path | None, obj: Any) -> Found:
    return Found(path, None, note=f"{type(obj).__name__}: {NOT_LOOKED_INTO}")


def _may_hold(leaf: Any) -> bool:
    """Return whether a value may hold a tensor: what the collector of garbage does not know refers to nothing."""
    cls = type(leaf)
    if id(cls) in PLAIN_CLASSES or not (gc.is_tracked(leaf) or _is_memory(leaf)):
        return False
    return _is_code(leaf) or (not any(issubclass(cls, base) for base in _CODE) and container_of(cls) is None)


def _is_code(obj: Any) -> bool:
    """Return whether an object is a function over variables, or a method of what is no module: they may use tensors."""
    if type(obj) is types.FunctionType:
        return obj.__closure__ is not None
    return type(obj) is types.MethodType and not any(issubclass(type(obj.__self__), base) for base in _CODE)


def _is_memory(obj: Any) -> bool:
    """Return whether an object is an array of what may be NaN, or has values outside of Python."""
    cls = type(obj)
    if issubclass(cls, np.ndarray):
        return np.ndarray.dtype.__get__(obj).kind in "fcOV"
    return any(issubclass(cls, base) for base in _HIDING)


def _is_hiding(obj: Any, own: dict[str, Any]) -> bool:
    """Return whether an object refers to more than its own attributes tell."""
    known = {id(type(obj)), id(getattr(obj, "__dict__", None)), *map(id, own.values())}
    others = [one for one in gc.get_referents(obj) if id(one) not in known]
    return _is_memory(obj) or any(is_tensor(leaf) or _may_hold(leaf) for one in others for _, leaf in leaves(one))

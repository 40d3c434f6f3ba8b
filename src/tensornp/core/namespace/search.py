"""A search through a namespace for tensors and arrays: their names, nearest first, in bounded time.

Nothing of the user's runs: no property, no `__getattr__`, no iterator of a subclass. What an object holds is read from
its own dictionary and slots alone; only a class that stands for a tensor is asked for it, where that is quick.
"""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import own_attributes
from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.ordinary import is_of_torch
from tensornp.core.namespace.members import IS_ARRAY, IS_TENSOR, Visitor, in_dict, in_module, visitor_for
from tensornp.core.tensor.containers import items_of
from tensornp.core.tensor.paths import Kind, Path

_CHECK_EVERY = 64
_TURN = 512
_RESULT = re.compile(r"_{1,3}|_\d+")
_OF_IMPORT = frozenset(("__loader__", "__spec__"))
_OF_IPYTHON = frozenset("In _ih _oh _dh _ __ ___ _i _ii _iii exit quit open get_ipython".split())
_requires_grad, _is_leaf, _retains_grad = (
    getattr(torch.Tensor, name).__get__ for name in ("requires_grad", "is_leaf", "retains_grad")
)
Visit = Callable[[Any, Kind, Path], object]
"""What is called with each tensor and array, its kind and the path to it; the search ends where it returns True."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search.

    Attributes
    ----------
    num_names : int
        Tensors, arrays and other objects that were looked at.
    is_complete : bool
        Whether it looked at everything.
    left_out : bool
        Whether gradients were not looked at, since another thread runs.
    tracked : list of torch.Tensor
        Those that autograd has computed.
    """

    num_names: int
    is_complete: bool
    left_out: bool
    tracked: list[torch.Tensor]
    _filled: set[int]
    _modules: dict[int, Path]
    _held_by: dict[int, list[int]]

    def trained_module_of(self, parameter: torch.Tensor) -> Path | None:
        """Return the innermost module of `parameter` with another parameter that has a gradient."""
        trained = self._modules_above(self._filled)
        above = (module for module in self._modules_above([id(parameter)]) if module in trained)
        return self._modules.get(next(above, 0))

    def _modules_above(self, members: Iterable[int]) -> dict[int, None]:
        """Return the modules that hold any of some parameters, the innermost first, all by identity."""
        found: dict[int, None] = {}
        waiting = deque(members)
        while waiting:
            for module in self._held_by.get(waiting.popleft(), ()):
                if module not in found:
                    found[module] = None
                    waiting.append(module)
        return found


def search(
    namespace: Mapping[str, Any],
    max_seconds: float,
    visit: Visit,
    *,
    besides: Iterable[object] = (),
    unguarded: Unguarded | None = None,
) -> Searched:
    """Call `visit` with each tensor and array that a namespace reaches, nearest first.

    Parameters
    ----------
    namespace : mapping of str to object
    max_seconds : float
        Of this thread's own time, however busy the machine is, after which it stops; names at hand come first, then
        what they hold, level by level and in turns. What `visit` takes counts too.
    visit : callable
    besides : iterable of object, optional
        Containers that are not looked into, wherever they are met: they are searched by themselves.
    unguarded : Unguarded, optional
        What reads the gradients, or leaves them out, where the caller has read some already.
    """
    walk = _Walk(namespace, max_seconds, visit, besides, unguarded or Unguarded())
    is_complete = walk.run()
    return Searched(
        walk.num_names,
        is_complete,
        walk.unguarded.left_out,
        walk.tracked,
        walk.filled,
        walk.modules,
        walk.held_by,
    )


class _Walk:
    """The state of one search while it runs."""

    def __init__(
        self,
        namespace: Mapping[str, Any],
        max_seconds: float,
        visit: Visit,
        besides: Iterable[object],
        unguarded: Unguarded,
    ) -> None:
        self.num_names = 0
        self.tracked: list[torch.Tensor] = []
        self.filled: set[int] = set()
        self.modules: dict[int, Path] = {}
        self.held_by: dict[int, list[int]] = {}
        self.unguarded = unguarded
        self._namespace = namespace
        self._max_seconds = max_seconds
        self._visit = visit
        self._besides = besides
        self._skipped = False

    def run(self) -> bool:
        """Return whether everything was looked at."""
        deadline = time.thread_time() + self._max_seconds
        visit = self._visit
        # By identity: a metaclass of the user's may compute hashes, or have none. The class is held, so that it stays.
        visitors: dict[int, tuple[type, Visitor | None, Kind]] = {}
        seen: set[int] = set()
        holders: set[int] = {id(self._namespace), *map(id, self._besides)}
        # Holders take turns, so that a huge one does not hide the others; the names at hand come first.
        turns: deque[Iterator[tuple[Path, Any, Kind]]] = deque()
        turn, limit = self._children(self._namespace, None, _roots), sys.maxsize
        # What a cell gave is called as the user's own names reach it, wherever one does.
        last = []
        if history := history_name(self._namespace):
            outputs = self._namespace["_oh"]
            holders.add(id(outputs))
            last.append(self._children(outputs, (None, history), in_dict))
        while True:
            count = 0
            for path, obj, kind in itertools.islice(turn, limit):
                count += 1
                self.num_names += 1
                if not self.num_names % _CHECK_EVERY and time.thread_time() > deadline:
                    return False
                cls = type(obj)
                try:
                    _, visitor, tensor_kind = visitors[id(cls)]
                except KeyError:
                    visitor = visitor_for(cls)
                    tensor_kind = "parameter" if issubclass(cls, torch.nn.Parameter) else "tensor"
                    visitors[id(cls)] = cls, visitor, tensor_kind
                if visitor is None:
                    continue
                if visitor is IS_TENSOR:
                    if visit(obj, kind or tensor_kind, path) is True:
                        return False
                    if cls is not torch.Tensor or _requires_grad(obj):
                        for other, other_kind, other_path in self._beside(obj, path, is_new=id(obj) not in seen):
                            if visit(other, other_kind, other_path) is True:
                                return False
                        seen.add(id(obj))
                elif visitor is IS_ARRAY:
                    if visit(obj, "array", path) is True:
                        return False
                elif id(obj) not in holders:
                    holders.add(id(obj))
                    turns.append(self._children(obj, path, visitor))
            if count == limit:
                turns.append(turn)
            if not turns and last:
                turns.append(last.pop())
            if not turns or time.thread_time() > deadline:
                return not turns and not self._skipped
            turn, limit = turns.popleft(), _TURN

    def _beside(self, tensor: Any, path: Path, *, is_new: bool) -> list[tuple[Any, Kind, Path]]:
        """Return the gradient of a tensor and the tensors inside a wrapper, once."""
        found: list[tuple[Any, Kind, Path]] = []
        try:
            if _requires_grad(tensor):
                is_leaf = _is_leaf(tensor)
                if not is_leaf and is_new:
                    self.tracked.append(tensor)
                grad = self.unguarded.grad_of(tensor) if is_leaf or _retains_grad(tensor) else None
                if grad is not None:
                    self.filled.add(id(tensor))
                    if is_new:
                        found.append((grad, "grad", (path, ".grad")))
            if is_new and not is_of_torch(tensor):
                for name, inner in own_attributes(tensor):
                    if issubclass(type(inner), torch.Tensor):
                        found.append((inner, "tensor", (path, f".{name}")))
        except Exception:
            # Some wrappers have no such attributes, and lazy parameters have none yet.
            pass
        return found

    def _children(self, holder: Any, path: Path | None, visit: Visitor) -> Iterator[tuple[Path, Any, Kind]]:
        is_module = visit is in_module and path is not None
        if is_module and path is not None:
            self.modules[id(holder)] = path
        try:
            for step, child, kind in visit(holder):
                if is_module and (kind == "parameter" or issubclass(type(child), torch.nn.Module)):
                    self.held_by.setdefault(id(child), []).append(id(holder))
                yield (path, step), child, kind
        except Exception:
            # Another thread changes it just now, or a class of C hides what it holds.
            self._skipped = True


def _roots(namespace: Any) -> Iterator[tuple[Any, Any, Kind]]:
    """Yield the names that are the user's: not those that IPython and the import system bind."""
    outputs = namespace["_oh"] if history_name(namespace) else None
    results = {id(value) for value in list(outputs.values())} if outputs is not None else set()
    for name, value in items_of(namespace) if isinstance(namespace, dict) else list(namespace.items()):
        if name in _OF_IMPORT:
            continue
        # `_` and `_3` are the user's where they are no result of a cell: after `for _ in ...`.
        is_history = outputs is not None and is_history_name(name)
        if not is_history or (_RESULT.fullmatch(name) and id(value) not in results):
            yield name, value, ""


def history_name(namespace: Mapping[str, Any]) -> str:
    """Return the name of the results that IPython keeps: ``Out`` or ``_oh``; empty without IPython."""
    outputs = namespace.get("_oh")
    if not issubclass(type(outputs), dict):
        return ""
    return "Out" if namespace.get("Out") is outputs else "_oh"


def is_history_name(name: str) -> bool:
    """Return whether IPython binds `name` itself, such as ``_3`` and ``In``."""
    return name in _OF_IPYTHON or (name[:1] == "_" and name[1:].lstrip("i").isdecimal())

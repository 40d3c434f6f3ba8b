"""Name the objects next to weights that may hold unlisted weights."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.text import counted
from tensornp.core.namespace.members import IS_ARRAY, is_foreign, registered, visitor_for
from tensornp.core.tensor.containers import BUILT_IN, LEAVES, is_mapping, kept_in
from tensornp.core.tensor.form import STORAGES
from tensornp.core.tensor.paths import PLAIN_CLASSES
from tensornp.core.tensor.stand_ins import stand_in_for
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.names.quoted import MAX_INSIDE, cut

MAX_LOOKED_AT = 500_000
"""Values in all objects of one container: some tenths of a second."""
_MAX_NAMED = 4
MAX_NAMED = 1000
"""Objects of which the class is told."""
_WEIGHTS = (torch.Tensor, np.ndarray, *STORAGES, torch.ScriptObject)
_SKIPPED = (type, types.ModuleType, types.CodeType, types.FrameType, types.TracebackType)
_KEPT_BY = frozenset(("builtins", "collections", "configparser", "omegaconf", "os", "types", "weakref"))
"""Libraries whose mappings load nothing: what they hold is seen."""
_GENERATORS = "numpy.random"
"""What makes random numbers, from arrays that are no weights."""
_READ_BY = ("__getitem__", "__iter__")


class Unlisted:
    """Objects of a container without listed weights."""

    def __init__(self) -> None:
        self._noted: list[tuple[str, Any]] = []
        self._listed: set[int] = set()
        self._classes: dict[int, tuple[type, bool]] = {}
        self._left = MAX_LOOKED_AT

    def note(self, name: str, obj: Any) -> None:
        """Take an object by its name."""
        self._noted.append((name, obj))

    def is_listed(self, obj: Any) -> None:
        """Note that the weights of an object and of its submodules are listed."""
        if id(type(obj)) in LEAVES:
            self._listed.add(id(obj))
            return
        waiting = [obj]
        while waiting:
            one = waiting.pop()
            if id(one) in self._listed:
                continue
            self._listed.add(id(one))
            if issubclass(type(one), torch.nn.Module):
                waiting += (child for _, child, _ in registered(one))

    def named(self) -> dict[str, str]:
        """Return the class of each object, by its name, of the first that were taken."""
        return {name: type(obj).__name__ for name, obj in self._noted[:MAX_NAMED]}

    def problems(self) -> list[str]:
        """Return a problem that names objects that may hold weights, if any."""
        named = [(name, type(one).__name__) for name, one in self._noted if self._is_maybe_holding(one)]
        if not named:
            return []
        said = [f"{cut(name, MAX_INSIDE)} ({cls})" for name, cls in named[:_MAX_NAMED]]
        verb = "was" if len(named) == 1 else "were"
        return [
            NotListed(
                f"{counted(len(named), 'object')} {verb} not looked into: {', '.join(said)}"
                f"{', …' * (len(named) > _MAX_NAMED)}"
            )
        ]

    def _is_maybe_holding(self, obj: Any) -> bool:
        """Return whether an object may hold unlisted weights; runs no code of its class."""
        try:
            # The first is a buffer of bytes.
            return id(obj) not in self._listed and (visitor_for(type(obj)) is IS_ARRAY or self._is_met_in(obj))
        except Exception:
            # Another thread changes it just now, or it is broken.
            return True

    def _is_met_in(self, obj: Any) -> bool:
        waiting, seen = [obj], {id(obj)}
        while waiting:
            one = waiting.pop()
            if self._is_weight(one):
                return True
            children = list(_held_by(one, self._left))
            self._left -= len(children)
            if self._left <= 0:
                return True
            for child in children:
                if id(type(child)) not in PLAIN_CLASSES and id(child) not in seen and id(child) not in self._listed:
                    seen.add(id(child))
                    waiting.append(child)
        return False

    def _is_weight(self, obj: Any) -> bool:
        """Return whether an object is a tensor or may load one."""
        cls = type(obj)
        known = self._classes.get(id(cls))
        if known is None:
            is_one = any(issubclass(cls, base) for base in _WEIGHTS) or stand_in_for(cls) is not None or _loads(cls)
            known = self._classes[id(cls)] = cls, is_one
        return known[1]


def _loads(cls: type) -> bool:
    """Return whether a class is a mapping that may load or compute its values."""
    if any(issubclass(cls, base) for base in BUILT_IN) or not is_mapping(cls) or kept_in(cls):
        return False
    readers = (base for base in cls.__mro__ if any(name in vars(base) for name in _READ_BY))
    return not all(base.__module__.partition(".")[0] in _KEPT_BY for base in readers)


def _held_by(obj: Any, most: int) -> Iterator[Any]:
    """Yield the garbage collector's referents of an object, a limited number."""
    cls = type(obj)
    if any(issubclass(cls, base) for base in _SKIPPED) or is_foreign(cls) or cls.__module__.startswith(_GENERATORS):
        return
    if cls is types.FunctionType:
        # Its module is not its own.
        yield from filter(None, (obj.__closure__, obj.__defaults__, obj.__kwdefaults__, obj.__dict__))
        return
    if issubclass(cls, torch.nn.Module):
        # A scripted one has its weights outside of Python.
        yield from (child for _, child, _ in registered(obj))
    bases: Iterator[Any] = (base for base in BUILT_IN if issubclass(cls, base))
    size = next((base.__len__(obj) for base in bases), 0)
    yield from gc.get_referents(obj) if size <= most else [None] * most

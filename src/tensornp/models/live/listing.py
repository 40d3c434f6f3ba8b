"""Collect weights, plain values and problems from walks through objects in memory."""

from __future__ import annotations

import types
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.lowlevel.attributes import is_array, own_attributes
from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.containers import MAX_DEPTH, is_container, is_seen, leaves
from tensornp.core.tensor.paths import PLAIN_CLASSES, is_plain_tuple, is_plain_value, key_text, steps_of, tuple_text
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.models.entries.entry import NotListed, WeightEntry, nothing
from tensornp.models.entries.in_memory import array_weight, weight_of
from tensornp.models.formats.table import Beside
from tensornp.models.names.quoted import MAX_INSIDE, cut, unique_names

MAX_LEAVES = 5_000_000
"""Values of one container that are looked at: some seconds."""
MAX_SAID = 100_000
"""Items that are no tensors, such as the number of the step, that are kept."""
_OF_TORCH = frozenset(map(id, (torch.dtype, torch.device, torch.layout, torch.memory_format)))
"""Classes by identity: a metaclass of the user's may compute hashes and equality."""
_MASKED = "it is a masked array, whose hidden elements are no weights; put its .filled() there"
_MAX_NAMED = 4
_HOLD_NONE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, set, frozenset)
"""Classes of objects without weights; tensors in a set are not looked for."""


class Leaf(NamedTuple):
    """A value in a container with its name, its expression (or empty), and the number of steps to it."""

    what: Any
    name: str
    code: str
    depth: int = 0


class Listing:
    """The results of walks through objects in memory.

    `seen` are the modules and parameters by identity.
    """

    def __init__(self) -> None:
        self.entries: list[WeightEntry] = []
        self.values: list[tuple[str, Any]] = []
        self.classes: dict[str, str] = {}
        self.problems: list[str] = []
        self.seen: set[int] = set()
        self.num_repeated = 0
        self._unknown: list[tuple[str, Any]] = []

    def leaves(self, tree: Any, name: str, code: str) -> Iterator[Leaf]:
        """Yield the first values of a tree."""
        every = leaves(tree, (None, ""))
        for path, what in islice(every, MAX_LEAVES):
            if path is None or (id(type(what)) in PLAIN_CLASSES and len(self.values) >= MAX_SAID):
                # A history of millions of numbers is cut.
                continue
            steps = [*steps_of(path)][-2::-1]
            codes = [code, *map(code_of, steps)]
            reached = "".join(codes) if all(codes) else ""
            yield Leaf(what, joined(name, ".".join(map(key_of, steps))), reached, len(steps))
        if next(every, None) is not None:
            said = f"{name or 'it'} has more than {MAX_LEAVES:,} values, and the others are not listed"
            self.problems.append(NotListed(said))

    def weight(self, leaf: Leaf) -> WeightEntry | None:
        """Return the weight of a value; plain values are kept, and others noted."""
        what = plain_of(leaf.what)
        if is_plain_value(what):
            self.values.append((leaf.name, what))
            return None
        if is_tensor_like(what):
            is_marked = type(what) is not torch.Tensor and ("_is_param", True) in own_attributes(what)
            is_parameter = is_marked or issubclass(type(what), torch.nn.Parameter)
            return weight_of(leaf.name, "parameter" if is_parameter else "tensor", what, leaf.code)
        if issubclass(type(what), np.ma.MaskedArray):
            return nothing(leaf.name, "array", leaf.code, _MASKED, "cpu")
        if is_array(what):
            return array_weight(leaf.name, what, leaf.code)
        self.note(leaf.name, what, leaf.depth)
        return None

    def note(self, name: str, obj: Any, depth: int = 0) -> None:
        """Note an object that may hold weights, unless it is a container that is empty or contains itself."""
        is_empty = depth < MAX_DEPTH and is_container(obj) and is_seen(obj)
        if not is_empty and not issubclass(type(obj), _HOLD_NONE):
            self._unknown.append((name, obj))

    def named(self) -> tuple[list[WeightEntry], dict[str, Any], list[str]]:
        """Return the weights and the values by unique names, and the problems."""
        every = [*(one.name for one in self.entries), *(name for name, _ in self.values)]
        names = unique_names(every)
        pairs = zip(self.entries, names, strict=False)
        entries = [one if one.name == name else one._with_(name=name) for one, name in pairs]
        values = zip(names[len(entries) :], self.values, strict=True)
        known = self.seen | {id(one.tensor) for one in self.entries} if self._unknown else set()
        unknown = ((name, one) for name, one in self._unknown if id(one) not in known)
        if objects := [f"{cut(name, MAX_INSIDE)} ({type(one).__name__})" for name, one in unknown]:
            verb = "was" if len(objects) == 1 else "were"
            said = ", ".join(objects[:_MAX_NAMED]) + ", …" * (len(objects) > _MAX_NAMED)
            self.problems.append(NotListed(f"{counted(len(objects), 'object')} {verb} not looked into: {said}"))
        return entries, Beside({name: value for name, (_, value) in values}), list(dict.fromkeys(self.problems))


def joined(*names: str) -> str:
    return ".".join(filter(None, names))


def key_of(step: Any) -> str:
    """Return the part of the name for a step."""
    if type(step) is not tuple:
        return str(step).strip("[]").lstrip(".")
    (key,) = step
    return str.__str__(key) if issubclass(type(key), str) else _written(key)


def code_of(step: Any) -> str:
    """Return the part of the expression for a step; empty for a key that cannot be written."""
    if type(step) is not tuple:
        return str(step)
    (key,) = step
    is_written = issubclass(type(key), str) or is_plain_value(key) or is_plain_tuple(key)
    return f"[{_written(key)}]" if is_written else ""


def _written(key: Any) -> str:
    if issubclass(type(key), str):
        return repr(str.__str__(key))
    return tuple_text(key) if is_plain_tuple(key) else key_text(key)


def plain_of(what: Any) -> Any:
    """Return a NumPy number as a plain value, torch's dtypes and devices as text."""
    cls = type(what)
    if id(cls) in _OF_TORCH:
        return str(what)
    return np.generic.item(what) if issubclass(cls, np.generic) and cls.__module__ == "numpy" else what

"""The weights of dictionaries and lists of tensors, nested as checkpoints are: a name joins the keys with dots."""

from __future__ import annotations

import re
from collections import OrderedDict
from itertools import islice
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.attributes import is_subclass
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import Path, is_plain_tuple, is_plain_value, key_text, steps_of, tuple_text
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.models.entries.array import array_weight
from tensornp.models.entries.entry import WeightEntry, nothing
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.entries.tensor import weight_of
from tensornp.models.formats.contents import Contents
from tensornp.models.names.naming import own_names
from tensornp.models.optimizers.saved import optimizers_in

MAX_LEAVES = 5_000_000
"""Values that are looked at: some seconds."""
_NUMBERS = frozenset(map(id, (int, float, bool, str, type(None))))
_CONTAINERS = frozenset(map(id, (dict, OrderedDict, list, tuple)))
"""By identity: a metaclass of the user's may compute hashes and equality."""
_MASKED = "it is a masked array, whose hidden elements are no weights; put its .filled() there"
MAX_SAID = 1000
"""Items that are no tensors, such as the number of the step, that are kept."""
_INDEX = re.compile(r"\[(\d{1,9})\]")


@unnoticed
def contents_of_tree(tree: Any, expression: str) -> Contents:
    """Return the weights of a dictionary, which `expression` reaches, and by name what it holds besides.

    Nothing of the user's runs; a module inside is left out.
    """
    found, problems = _listed(tree, expression)
    steps = [steps_below(path) for path, _ in found]
    brackets = ["".join(map(bracket_of, one)) for one in steps]
    # Two ways to the same name: what tells them apart are the brackets.
    names = own_names([".".join(map(key_of, one)) for one in steps], brackets)
    entries: list[WeightEntry] = []
    places: list[list[Any]] = []
    besides: dict[str, Any] = {}
    for (_, leaf), name, bracket, place in zip(found, names, brackets, steps, strict=True):
        if is_tensor_like(leaf):
            entries.append(weight_of(name, kind_of(leaf), leaf, expression + bracket))
        elif is_subclass(type(leaf), np.ma.MaskedArray):
            entries.append(nothing(name, "array", expression + bracket, _MASKED, "cpu"))
        elif is_subclass(type(leaf), np.ndarray):
            entries.append(array_weight(name, leaf, expression + bracket))
        elif is_plain_value(leaf) and len(besides) < MAX_SAID:
            besides[name] = leaf
        if len(places) < len(entries):
            places.append(place)
    optimizers, entries = optimizers_in(tree, _as_container, lambda: map(_keys_of, places), entries)
    return Contents(entries, besides, problems, optimizers)


def _listed(tree: Any, expression: str) -> tuple[list[tuple[Path, Any]], list[str]]:
    """Return the tensors and arrays of a tree and its first other items, each with its path, and what is left out."""
    found: list[tuple[Path, Any]] = []
    num_besides = 0
    every = leaves(tree, (None, expression))
    for path, leaf in islice(every, MAX_LEAVES):
        # Of a history of millions of numbers, a thousand are told.
        num_besides += id(type(leaf)) in _NUMBERS
        if path is not None and (num_besides <= MAX_SAID or id(type(leaf)) not in _NUMBERS):
            found.append((path, leaf))
    is_cut = next(every, None) is not None
    cut = NotListed(f"it has more than {MAX_LEAVES:,} values, and the others are not listed")
    return found, [cut] if is_cut else []


def _as_container(value: Any) -> Any:
    return value if id(type(value)) in _CONTAINERS else None


def _keys_of(steps: list[Any]) -> tuple[Any, ...]:
    """Return the keys and indices of these steps; None for a key whose hash would be asked of its own class."""
    return tuple(map(_key_alone, steps))


def _key_alone(step: Any) -> Any:
    if type(step) is tuple:
        return step[0] if type(step[0]) in (int, str) else None
    found = _INDEX.fullmatch(step)
    return int(found[1]) if found else None


def kind_of(tensor: Any) -> str:
    """Return what a tensor outside of modules is listed as."""
    return "parameter" if is_subclass(type(tensor), torch.nn.Parameter) else "tensor"


def steps_below(path: Path) -> list[Any]:
    """Return the steps that lead to a leaf, without what leads to the root."""
    return [*steps_of(path)][-2::-1]


def key_of(step: Any) -> str:
    """Return what a step adds to the name."""
    if type(step) is not tuple:
        return str(step).strip("[]").lstrip(".")
    (key,) = step
    return str.__str__(key) if is_subclass(type(key), str) else _written(key)


def bracket_of(step: Any) -> str:
    """Return what a step adds to the expression."""
    return f"[{_written(step[0])}]" if type(step) is tuple else str(step)


def _written(key: Any) -> str:
    """Return a key as an expression, a text in full; one that has none by its class alone."""
    if is_subclass(type(key), str):
        return repr(str.__str__(key))
    return tuple_text(key) if is_plain_tuple(key) else key_text(key)

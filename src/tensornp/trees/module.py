"""The weights of a live module: what is registered, under every name, and tensors that are merely attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel.attributes import is_subclass
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.namespace.members import in_module, registered_names
from tensornp.core.tensor.paths import Path, expression_of
from tensornp.trees.entry import WeightEntry
from tensornp.trees.live_entry import LiveEntry
from tensornp.trees.nothing_entry import NothingEntry

_COMPILED = "_orig_mod"
"""The name under which `torch.compile` keeps a module; it is not shown, and stays in the expression."""
_PARALLEL = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)


class _Place(NamedTuple):
    """Where a module stands: the names that lead to it, and the path."""

    names: tuple[str, ...]
    path: Path
    above: frozenset[int]


@unnoticed
def entries_of_module(module: torch.nn.Module, expression: str) -> list[WeightEntry]:
    """Return the weights of `module`, which `expression` reaches; nothing of the user's runs."""
    entries = list(_entries(module, _Place((), (None, expression), frozenset())))
    by_object: dict[int, list[str]] = {}
    live = [entry for entry in entries if isinstance(entry, LiveEntry)]
    for entry in live:
        by_object.setdefault(id(entry.tensor), []).append(entry.name)
    for entry in live:
        entry.tied_to = tuple(name for name in by_object[id(entry.tensor)] if name != entry.name)
    return entries


def _entries(module: Any, place: _Place) -> Iterator[WeightEntry]:
    passing = object.__getattribute__(module, "__dict__").get("_non_persistent_buffers_set", ())
    below = []
    for name, step, child, kind in registered_names(module):
        names = (*place.names, name) if _is_shown(module, name) else place.names
        path = place.path, step
        if kind == "":
            if child is not None and id(child) not in place.above:
                below.append((child, _Place(names, path, place.above | {id(module)})))
        elif child is None:
            yield NothingEntry(".".join(names), kind, expression_of(path), "it is registered as None")
        else:
            entry = LiveEntry(".".join(names), kind, child, expression_of(path))
            if kind == "buffer" and name in passing:
                entry.note = ", ".join(filter(None, ["not in the state dict", entry.note]))
            yield entry
    known = {id(child) for _, _, child, _ in registered_names(module)}
    for step, child, kind in in_module(module):
        if kind == "" and is_subclass(type(child), torch.Tensor) and id(child) not in known:
            name = ".".join((*place.names, step.lstrip(".")))
            entry = LiveEntry(name, "tensor", child, expression_of((place.path, step)))
            entry.note = ", ".join(filter(None, ["not registered", entry.note]))
            yield entry
    for child, its_place in below:
        yield from _entries(child, its_place)


def _is_shown(module: Any, name: str) -> bool:
    is_parallel = any(is_subclass(type(module), cls) for cls in _PARALLEL)
    return name != _COMPILED and not (name == "module" and is_parallel)

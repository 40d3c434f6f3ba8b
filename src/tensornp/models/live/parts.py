"""Modules and optimizers in a dictionary, as a training script saves them: each under its key, live."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel.attributes import is_subclass
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.formats.contents import Contents
from tensornp.models.live.module import entries_of_module
from tensornp.models.live.optimizer import entries_of_optimizer
from tensornp.models.live.state_dict import contents_of_tree
from tensornp.models.names.naming import own_names


class Parts(NamedTuple):
    """The weights of what a dictionary has, whether a module is among it, and the classes of modules by name."""

    contents: Contents
    is_of_module: bool
    classes: dict[str, str]


def has_parts(obj: Any) -> bool:
    """Return whether `obj` is a dictionary in which modules or optimizers are."""
    if type(obj) not in (dict, OrderedDict):
        return False
    return any(_is_named(key) and (_is_module(one) or _is_optimizer(one)) for key, one in dict.items(obj))


def _is_named(key: Any) -> bool:
    return type(key) in (str, int)


def _is_module(obj: Any) -> bool:
    return is_subclass(type(obj), torch.nn.Module)


def _is_optimizer(obj: Any) -> bool:
    return is_subclass(type(obj), torch.optim.Optimizer)


@unnoticed
def contents_of_parts(tree: Mapping[Any, Any], expression: str, namespace: Mapping[str, Any]) -> Parts:
    """Return the weights of a dictionary, which `expression` reaches; none of its `state_dict` runs, nor a hook.

    The states of an optimizer are named by the one module that is there, if there is one.
    """
    modules = [one for key, one in tree.items() if _is_named(key) and _is_module(one)]
    model = modules[0] if len(modules) == 1 else None
    entries: list[WeightEntry] = []
    besides: dict[str, Any] = {}
    problems: list[str] = []
    classes: dict[str, str] = {}
    optimizers: list[Any] = []
    for key, value in tree.items():
        code = f"{expression}[{key!r}]" if _is_named(key) else ""
        if code and _is_module(value):
            found, why, own = entries_of_module(value, code)
            entries += [_below(key, one) for one in found]
            problems += why
            classes |= {_joined(key, name): one for name, one in own.items()}
        elif code and _is_optimizer(value):
            found, said = entries_of_optimizer(value, code, model, namespace)
            # What they are called in a state dict is told without the key.
            entries += [one.with_(name=_joined(key, one.name)) for one in found]
            besides |= {_joined(key, name): one for name, one in said.items()}
        else:
            contents = contents_of_tree({key: value}, expression)
            entries += contents.entries
            besides |= contents.metadata
            problems += contents.problems
            optimizers += contents.optimizers
    names = own_names([one.name for one in entries], [one.code.removeprefix(expression) for one in entries])
    entries = [one if one.name == name else one.with_(name=name) for one, name in zip(entries, names, strict=True)]
    return Parts(Contents(entries, besides, problems, optimizers), bool(modules), classes)


def _below(key: Any, entry: WeightEntry) -> WeightEntry:
    tied_to = tuple(_joined(key, name) for name in entry.tied_to)
    saved_as = entry.saved_as and tuple(_joined(key, name) for name in entry.saved_as)
    return entry.with_(name=_joined(key, entry.name), tied_to=tied_to, saved_as=saved_as)


def _joined(key: Any, name: str) -> str:
    return f"{key}.{name}" if name else str(key)

"""The state of optimizers, by the names of the parameters that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import class_name, is_subclass
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.namespace.search import search
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import Kind, Path, expression_of, is_plain_value, steps_of
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.errors import BadRequestError
from tensornp.trees.entry import WeightEntry
from tensornp.trees.live_entry import LiveEntry
from tensornp.trees.module import entries_of_module
from tensornp.trees.names import own_names, shown_name
from tensornp.trees.nothing_entry import NothingEntry
from tensornp.trees.state_dict import bracket_of, key_of

_MAX_SECONDS = 0.5
"""For which parameters are looked for among the names of a notebook."""
_GROUPS, _STATE, _NAMES = "param_groups", "state", "param_names"


@unnoticed
def entries_of_optimizer(
    optimizer: Any, expression: str, model: torch.nn.Module | None, namespace: Mapping[str, Any]
) -> tuple[list[WeightEntry], dict[str, Any]]:
    """Return the state of each parameter of `optimizer`, which `expression` reaches, and what its groups say.

    Names are those that the optimizer keeps, or of `model`, or by which the namespace reaches a parameter; of one in
    neither, where it stands.
    """
    held = object.__getattribute__(optimizer, "__dict__")
    state = held.get(_STATE, {})
    names: list[str] = []
    entries: list[WeightEntry] = []
    every: list[str] = []
    metadata: dict[str, Any] = {}
    groups = held.get(_GROUPS)
    groups = [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []
    by_object = {id(entry.tensor): entry.name for entry in _parameters_of(model)}
    if model is None and not all(map(_told_names, groups)):
        by_object = _names_reached([one for group in groups for one in _params_of(group)], namespace)
    for i, group in enumerate(groups):
        metadata |= _said_by(group, i)
        told = _told_names(group)
        for j, parameter in enumerate(_params_of(group)):
            place = f"{_GROUPS}[{i}].params[{j}]"
            name = told.get(j) or by_object.get(id(parameter)) or place
            code = f"{expression}.{_STATE}[{expression}.{_GROUPS}[{i}]['params'][{j}]]"
            # Not by `[]`, which would give it a state; a parameter is its key by identity.
            for entry, tail in _state_of(
                _state_at(state, parameter), name, code, LiveEntry("", "", parameter, "").location
            ):
                entries.append(entry)
                names.append(entry.name)
                every.append(f"{_STATE}.{place}{tail}")
    for entry, name in zip(entries, own_names(names, every), strict=True):
        entry.name = name
    return entries, metadata


def _names_reached(parameters: Sequence[Any], namespace: Mapping[str, Any]) -> dict[int, str]:
    """Return by identity how names reach parameters: inside the module that has all of them, or from a name on."""
    wanted = set(map(id, parameters))
    paths: dict[int, Path] = {}

    def visit(tensor: Any, kind: Kind, path: Path) -> bool:
        if id(tensor) in wanted and kind == "parameter":
            paths.setdefault(id(tensor), path)
        return len(paths) == len(wanted)

    search(namespace, _MAX_SECONDS, visit)
    roots = {[*steps_of(path)][-1] for path in paths.values()}
    root = namespace.get(roots.pop()) if len(roots) == 1 else None
    if len(paths) == len(wanted) and is_subclass(type(root), torch.nn.Module):
        return {id(entry.tensor): entry.name for entry in _parameters_of(root)}
    return {key: expression_of(path) for key, path in paths.items()}


def _state_at(state: Any, parameter: Any) -> Any:
    return dict.get(state, parameter) if isinstance(state, dict) else None


def _state_of(state: Any, name: str, code: str, device: str) -> Iterator[tuple[WeightEntry, str]]:
    if not is_subclass(type(state), dict) or not state:
        yield NothingEntry(f"{_STATE}.{name}", "state", code, "no state yet", device), ""
        return
    has_tensors = False
    for path, leaf in leaves(state, (None, "")):
        if path is None or not is_tensor_like(leaf):
            continue
        has_tensors = True
        steps = [*steps_of(path)][-2::-1]
        tail = "".join(f".{key_of(step)}" for step in steps)
        yield LiveEntry(f"{_STATE}.{name}{tail}", "state", leaf, code + "".join(map(bracket_of, steps))), tail
    if not has_tensors:
        yield NothingEntry(f"{_STATE}.{name}", "state", code, "its state has no tensor", device), ""


def is_state_dict(tree: Any) -> bool:
    """Return whether a dictionary is what the `state_dict` of an optimizer gives."""
    return type(tree) is dict and isinstance(tree.get(_STATE), dict) and isinstance(tree.get(_GROUPS), list)


@unnoticed
def note_names(tree: dict[str, Any], entries: Iterable[WeightEntry], model: torch.nn.Module | None) -> None:
    """Note of each state in the state dict of an optimizer to which parameter it belongs, where that is known.

    A model's parameters are taken in their order, as `model.parameters()` gives them to an optimizer, if they are as
    many.
    """
    groups = [group for group in tree[_GROUPS] if isinstance(group, dict)]
    params = [key for group in groups for key in _params_of(group)]
    by_key: dict[str, str] = {}
    for group in groups:
        told = _told_names(group)
        by_key |= {key_of((key,)): told[j] for j, key in enumerate(_params_of(group)) if j in told}
    in_order = _parameters_of(model)
    pairs = list(zip(params, in_order, strict=False)) if len(in_order) == len(params) and not by_key else []
    # Groups may have another order: a state of another shape than its parameter tells so.
    if all(_fits(tree[_STATE].get(key), entry) for key, entry in pairs):
        by_key |= {key_of((key,)): entry.name for key, entry in pairs}
    for entry in entries:
        first, _, rest = entry.name.partition(".")
        # Keys may have dots, as names have that stand in their place.
        name = by_key.get(rest.partition(".")[0]) or by_key.get(rest.rpartition(".")[0])
        if first == _STATE:
            entry.kind = "state"
            if name is not None:
                entry.note = ", ".join(filter(None, [f"of {shown_name(name)}", entry.note]))


def _parameters_of(model: torch.nn.Module | None) -> list[LiveEntry]:
    """Return the parameters of a model, each once, by its first name, in the order of `model.parameters()`."""
    if model is None:
        return []
    if not is_subclass(type(model), torch.nn.Module):
        raise BadRequestError(f"model is the module whose parameters are optimized, not a {class_name(type(model))}")
    found: dict[int, LiveEntry] = {}
    for entry in entries_of_module(model, "model")[0]:
        if isinstance(entry, LiveEntry) and entry.kind == "parameter":
            found.setdefault(id(entry.tensor), entry)
    return list(found.values())


def _params_of(group: Mapping[str, Any]) -> Sequence[Any]:
    params = group.get("params")
    return params if isinstance(params, (list, tuple)) else ()


def _fits(state: Any, parameter: LiveEntry) -> bool:
    """Return whether the state may be that of a parameter: what is no number has its shape."""
    tensors = [value for value in state.values() if is_tensor_like(value)] if type(state) is dict else []
    shapes = [LiveEntry("", "", tensor, "").shape for tensor in tensors]
    return all(shape in (parameter.shape, ()) for shape in shapes)


def _told_names(group: Mapping[str, Any]) -> dict[int, str]:
    """Return the names that a group gives to its parameters, where they are as many."""
    told, params = group.get(_NAMES), group.get("params")
    if not isinstance(told, (list, tuple)) or not isinstance(params, (list, tuple)) or len(told) != len(params):
        return {}
    return {j: name for j, name in zip(count(), told) if type(name) is str and name}


def _said_by(group: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return what a group says besides its parameters, but for tensors: ``param_groups[0].lr``."""
    said = {}
    for key, value in group.items():
        is_tuple = type(value) is tuple and all(map(is_plain_value, value))
        if key not in ("params", _NAMES) and (is_plain_value(value) or is_tuple):
            said[f"{_GROUPS}[{number}].{key}"] = value
    return said

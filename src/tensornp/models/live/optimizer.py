"""The state of optimizers, by the names of the parameters that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import is_subclass
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.namespace.search import search
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import Kind, Path, expression_of, is_plain_value, steps_of
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.models.entries.entry import WeightEntry, nothing
from tensornp.models.entries.tensor import kind_of, weight_of
from tensornp.models.live.module import parameters_of
from tensornp.models.live.steps import bracket_of, key_of
from tensornp.models.names.naming import own_names
from tensornp.models.optimizers.param_groups import GROUPS, NAMES, STATE, params_of, told_names

_MAX_SECONDS = 0.5
"""For which parameters are looked for among the names of a notebook."""


@unnoticed
def entries_of_optimizer(
    optimizer: Any,
    expression: str,
    model: torch.nn.Module | None,
    namespace: Mapping[str, Any],
    called: Mapping[int, str] | None = None,
) -> tuple[list[WeightEntry], dict[str, Any]]:
    """Return the state of each parameter of `optimizer`, which `expression` reaches, and what its groups say.

    Names are those that the optimizer keeps, or of `model`, or what parameters are `called`, by identity, or by which
    the namespace reaches a parameter; of one in none of these, where it stands.
    """
    held = object.__getattribute__(optimizer, "__dict__")
    state = held.get(STATE, {})
    names: list[str] = []
    entries: list[WeightEntry] = []
    every: list[str] = []
    metadata: dict[str, Any] = {}
    groups = _groups_of(optimizer)
    by_object = {id(entry.tensor): entry.name for entry in parameters_of(model) or ()} or dict(called or {})
    if not by_object and not all(map(told_names, groups)):
        by_object = _names_reached(parameters_in(optimizer), namespace, optimizer)
    number = -1
    for i, group in enumerate(groups):
        metadata |= _said_by(group, i)
        for entry, key in _tensors_of(group, i, expression):
            entries.append(entry)
            names.append(entry.name)
            every.append(f"{GROUPS}[{i}].{key}")
        told = told_names(group)
        for j, parameter in enumerate(params_of(group)):
            number += 1
            place = f"{GROUPS}[{i}].params[{j}]"
            name = told.get(j) or by_object.get(id(parameter)) or place
            code = f"{expression}.{STATE}[{expression}.{GROUPS}[{i}]['params'][{j}]]"
            # Not by `[]`, which would give it a state; a parameter is its key by identity.
            for entry, tail in _state_of(
                _state_at(state, parameter), name, code, weight_of("", "", parameter, "").location
            ):
                entries.append(entry.with_(saved_as=(f"{STATE}.{number}{tail}",)))
                names.append(entry.name)
                every.append(f"{STATE}.{place}{tail}")
    own = zip(entries, own_names(names, every), strict=True)
    return [entry if entry.name == name else entry.with_(name=name) for entry, name in own], metadata


def _groups_of(optimizer: Any) -> list[dict[str, Any]]:
    groups = object.__getattribute__(optimizer, "__dict__").get(GROUPS)
    return [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []


def parameters_in(optimizer: Any) -> list[Any]:
    """Return what an optimizer was given to optimize."""
    return [one for group in _groups_of(optimizer) for one in params_of(group)]


def _names_reached(parameters: Sequence[Any], namespace: Mapping[str, Any], optimizer: Any) -> dict[int, str]:
    """Return by identity how names reach parameters: inside the module that has all of them, or from a name on."""
    wanted = set(map(id, parameters))
    # Optimizers and schedulers reach them as well, by no name of their own.
    others = {name: value for name, value in namespace.items() if not _is_of_training(value)}
    paths: dict[int, Path] = {}
    modules: dict[str, dict[int, str]] = {}

    def visit(tensor: Any, kind: Kind, path: Path) -> bool:
        if id(tensor) in wanted and kind == "parameter":
            paths.setdefault(id(tensor), path)
            root = [*steps_of(path)][-1]
            module: Any = others.get(root)
            if root not in modules and is_subclass(type(module), torch.nn.Module):
                modules[root] = {id(entry.tensor): entry.name for entry in parameters_of(module) or ()}
                return wanted <= modules[root].keys()
        return len(paths) == len(wanted)

    search(others, _MAX_SECONDS, visit, besides=optimizer)
    whole = next((names for names in modules.values() if wanted <= names.keys()), None)
    return whole if whole is not None else {key: expression_of(path) for key, path in paths.items()}


def _is_of_training(value: Any) -> bool:
    return any(is_subclass(type(value), cls) for cls in (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler))


def _state_at(state: Any, parameter: Any) -> Any:
    return dict.get(state, parameter) if isinstance(state, dict) else None


def _state_of(state: Any, name: str, code: str, device: str) -> Iterator[tuple[WeightEntry, str]]:
    if not is_subclass(type(state), dict) or not state:
        yield nothing(f"{STATE}.{name}", "state", code, "no state yet", device, is_pending=True), ""
        return
    has_tensors = False
    for path, leaf in leaves(state, (None, "")):
        if path is None or not is_tensor_like(leaf):
            continue
        has_tensors = True
        steps = [*steps_of(path)][-2::-1]
        tail = "".join(f".{key_of(step)}" for step in steps)
        yield weight_of(f"{STATE}.{name}{tail}", "state", leaf, code + "".join(map(bracket_of, steps))), tail
    if not has_tensors:
        yield nothing(f"{STATE}.{name}", "state", code, "its state has no tensor", device, is_pending=True), ""


def _tensors_of(group: Mapping[str, Any], number: int, expression: str) -> Iterator[tuple[WeightEntry, str]]:
    """Yield the tensors of a group besides its parameters, as a learning rate may be one, by their names when saved."""
    for key, value in group.items():
        if key != "params" and is_tensor_like(value):
            code = f"{expression}.{GROUPS}[{number}][{key!r}]"
            yield weight_of(f"{GROUPS}.{number}.{key}", kind_of(value), value, code), key


def _said_by(group: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return what a group says besides its parameters, but for tensors: ``param_groups[0].lr``."""
    said = {}
    for key, value in group.items():
        is_tuple = type(value) is tuple and all(map(is_plain_value, value))
        if key not in ("params", NAMES) and (is_plain_value(value) or is_tuple):
            said[f"{GROUPS}[{number}].{key}"] = value
    return said

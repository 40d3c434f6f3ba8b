"""The state of optimizers, by the names of the parameters that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import Any

import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.tensor.containers import IN_SET, items_of, leaves
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.entries.entry import WeightEntry, nothing
from tensornp.models.entries.repeated import NotListed
from tensornp.models.entries.tensor import weight_of
from tensornp.models.formats.contents import Beside
from tensornp.models.live.module import parameters_of
from tensornp.models.live.steps import (
    MAX_LEAVES,
    Unlisted,
    bracket_of,
    is_walked,
    is_writable,
    joined,
    key_of,
    plain_of,
    steps_below,
    weights_of_leaf,
)
from tensornp.models.names.quoted import own_names
from tensornp.models.optimizers import GROUPS, NAMES, PARAMS, STATE, params_of, told_names

_MAX_SAID = 100_000
"""Numbers and texts that are kept."""
_MAX_IN_ROW = 100
"""Numbers and texts of a list or a tuple that a group has as an option."""
_WRAPPED = ("optimizer", "_optimizer")
"""Attributes by which an optimizer holds the one that it stands for."""
_HIDDEN = f"{STATE} and {GROUPS} of the optimizer are no attributes of its own; nothing of what it gives is listed"


@outside_modes
def entries_of_optimizer(
    optimizer: Any, expression: str, model: torch.nn.Module | None, names_of: Callable[[Any], Mapping[int, str]]
) -> tuple[list[WeightEntry], Beside, list[str]]:
    """Return the states of an optimizer, its group settings, and the problems.

    Names come from the optimizer, else from `model`, else from `names_of(optimizer)`, which maps identities to names.
    An unnamed parameter is named by its place. States of objects in no group come last.
    """
    optimizer, expression = _keeper_of(optimizer, expression)
    attributes = object.__getattribute__(optimizer, "__dict__")
    state, unlisted = attributes.get(STATE, {}), Unlisted()
    for attribute, held in items_of(attributes):
        called = key_of((attribute,))
        if called not in (STATE, GROUPS, "defaults") and not called.startswith("_optimizer_"):
            # Those are hooks.
            unlisted.note(called, held)
    # Each with what it is called in a state dict, and by its place.
    found: list[tuple[WeightEntry, tuple[str, ...], str]] = []
    metadata = Beside()
    groups = _groups_of(optimizer)
    by_object: Mapping[int, str] = {id(entry.tensor): entry.name for entry in parameters_of(model) or ()}
    if not by_object and not all(map(told_names, groups)):
        by_object = names_of(optimizer)
    number, is_of_all = -1, issubclass(type(optimizer), torch.optim.LBFGS)
    for i, group in enumerate(groups):
        metadata |= _said_by(group, i)
        found += ((entry, (), f"{GROUPS}[{i}].{key}") for entry, key in _tensors_of(group, i, expression, unlisted))
        told = told_names(group)
        for j, parameter in enumerate(params_of(group)):
            number += 1
            unlisted.is_listed(parameter)
            place = f"{GROUPS}[{i}].params[{j}]"
            name = told.get(j) or by_object.get(id(parameter)) or place
            code = f"{expression}.{STATE}[{expression}.{GROUPS}[{i}]['params'][{j}]]"
            # Not by `[]`, which would give it a state; a parameter is its key by identity.
            held = _state_at(state, parameter)
            if len(metadata) < _MAX_SAID:
                metadata |= _said_in(held, number)
            device = weight_of("", "", parameter, "").location
            own = _state_of(held, name, code, device, unlisted, is_with_first=is_of_all and number > 0)
            found += ((entry, (f"{STATE}.{number}{tail}",), f"{STATE}.{place}{tail}") for entry, tail in own)
    known = {id(one) for group in groups for one in params_of(group)}
    found += ((entry, (), entry.name) for entry in _others_of(state, known, expression, unlisted))
    names = own_names([entry.name for entry, *_ in found], [every for *_, every in found])
    entries = [
        entry._with_(name=name, _saved_as=saved_as) for (entry, saved_as, _), name in zip(found, names, strict=True)
    ]
    for entry in entries:
        unlisted.is_listed(entry.tensor)
    metadata.others = {
        name: cls for name, cls in unlisted.named().items() if name.startswith((f"{GROUPS}.", f"{STATE}."))
    }
    hidden = [] if _keeps_states(attributes) else [NotListed(_HIDDEN)]
    return entries, metadata, [*hidden, *unlisted.problems()]


def _keeps_states(own: Mapping[str, Any]) -> bool:
    return STATE in own and isinstance(own.get(GROUPS), list)


def _keeper_of(optimizer: Any, expression: str = "") -> tuple[Any, str]:
    """Return the optimizer inside a wrapper such as accelerate's or Lightning's."""
    seen: set[int] = set()
    while id(optimizer) not in seen:
        seen.add(id(optimizer))
        own = object.__getattribute__(optimizer, "__dict__")
        inner = (name for name in _WRAPPED if issubclass(type(own.get(name)), torch.optim.Optimizer))
        if not _keeps_states(own) and (name := next(inner, "")):
            optimizer, expression = own[name], f"{expression}.{name}"
    return optimizer, expression


def _groups_of(optimizer: Any) -> list[dict[str, Any]]:
    groups = object.__getattribute__(_keeper_of(optimizer)[0], "__dict__").get(GROUPS)
    return [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []


def parameters_in(optimizer: Any) -> list[Any]:
    """Return the parameters of an optimizer."""
    return [one for group in _groups_of(optimizer) for one in params_of(group)]


def names_in(optimizer: Any, modules: Iterable[tuple[str, Any]]) -> dict[int, str]:
    """Return parameter names by identity: in the first module that has all of them, else in all modules."""
    wanted = {id(one) for one in parameters_in(optimizer)}
    found: dict[int, str] = {}
    for name, module in modules:
        own = {id(one.tensor): one.name for one in parameters_of(module) or ()}
        if wanted <= own.keys():
            return own
        found = {key: joined(name, called) for key, called in own.items() if key in wanted} | found
    return found


def modules_in(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names of modules and the modules."""
    yield from ((name, value) for name, value in namespace.items() if issubclass(type(value), torch.nn.Module))


def _state_at(state: Any, parameter: Any) -> Any:
    return dict.get(state, parameter) if isinstance(state, dict) else None


def _state_of(
    state: Any, name: str, code: str, device: str, unlisted: Unlisted, *, is_with_first: bool
) -> Iterator[tuple[WeightEntry, str]]:
    if state is None or (issubclass(type(state), dict) and not state):
        why = "the first parameter has the state of all" if is_with_first else "no state yet"
        yield nothing(f"{STATE}.{name}", "state", code, why, device, is_pending=True), ""
        return
    has_tensors = False
    for entry, tail in _weights_in(state, f"{STATE}.{name}", code, unlisted):
        has_tensors = True
        yield entry._with_(kind=STATE), tail
    if not has_tensors:
        yield nothing(f"{STATE}.{name}", "state", code, "its state has no tensor", device, is_pending=True), ""


def _others_of(state: Any, known: Set[int], expression: str, unlisted: Unlisted) -> Iterator[WeightEntry]:
    """Yield states of objects that are not parameters of a group."""
    if not issubclass(type(state), dict):
        unlisted.note(STATE, state)
        return
    for key, held in items_of(state):
        if id(key) not in known:
            name, code = _placed(f"{STATE}.", f"{expression}.{STATE}", key)
            yield from (entry._with_(kind=STATE) for entry, _ in _weights_in(held, name, code, unlisted))


def _tensors_of(
    group: dict[str, Any], number: int, expression: str, unlisted: Unlisted
) -> Iterator[tuple[WeightEntry, str]]:
    """Yield other tensors of a group, such as a learning rate, with saved names."""
    for key, value in items_of(group):
        if not is_plain_value(value) and value is not group.get(PARAMS):
            name, code = _placed(f"{GROUPS}.{number}.", f"{expression}.{GROUPS}[{number}]", key)
            for entry, tail in _weights_in(value, name, code, unlisted):
                yield entry, f"{key_of((key,))}{tail}"


def _placed(name: str, code: str, key: Any) -> tuple[str, str]:
    """Return the name and expression for a key, an empty expression without code."""
    step = (key,)
    return name + key_of(step), code + bracket_of(step) if is_writable([step]) else ""


def _weights_in(held: Any, name: str, code: str, unlisted: Unlisted) -> Iterator[tuple[WeightEntry, str]]:
    """Yield the weights in an object with the rest of their names."""
    for path, leaf in islice(leaves(held, (None, "")), MAX_LEAVES):
        keys = steps_below(path) if path is not None else []
        tail = "".join(f".{key_of(key)}" for key in keys)
        reached = code + "".join(map(bracket_of, keys)) if code and is_writable(keys) else ""
        is_plain = is_plain_value(plain_of(leaf))
        own = () if is_plain else [*weights_of_leaf(leaf, name + tail, reached)]
        yield from ((entry, tail) for entry in own)
        if is_plain and IN_SET in keys:
            # They have no order by which to compare them.
            unlisted.note(name + tail, set())
        elif not (own or is_plain or is_walked(leaf, len(keys))):
            unlisted.note(name + tail, leaf)


def _said_in(state: Any, number: int) -> dict[str, Any]:
    """Return numbers and texts of a parameter's state by saved name, such as a step."""
    items = items_of(state) if issubclass(type(state), dict) else ()
    return {name: value for key, held in items for name, value in _plain_in(held, f"{STATE}.{number}.{key_of((key,))}")}


def _said_by(group: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the settings of a group except tensors: ``param_groups[0].lr``."""
    said: dict[str, Any] = {}
    for key, value in items_of(group):
        called = key_of((key,))
        name = f"{GROUPS}[{number}].{called}"
        is_row = type(value) in (tuple, list) and 0 < len(value) <= _MAX_IN_ROW and all(map(is_plain_value, value))
        if called not in (PARAMS, NAMES):
            said |= {name: value} if is_row else dict(_plain_in(value, name))
    return said


def _plain_in(held: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the numbers and texts in an object with their names."""
    for path, leaf in islice(leaves(held, (None, "")), _MAX_SAID):
        keys, plain = steps_below(path) if path is not None else [], plain_of(leaf)
        if is_plain_value(plain) and IN_SET not in keys:
            yield name + "".join(f".{key_of(key)}" for key in keys), plain

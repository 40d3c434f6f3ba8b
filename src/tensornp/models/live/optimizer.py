"""The state of optimizers, by the names of the parameters that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.tensor.containers import items_of, leaves
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.entries.entry import NotListed, WeightEntry, nothing
from tensornp.models.entries.in_memory import weight_of
from tensornp.models.formats.contents import Beside, Contents
from tensornp.models.live.module import parameters_of
from tensornp.models.live.steps import (
    MAX_LEAVES,
    Unlisted,
    bracket_of,
    is_writable,
    joined,
    key_of,
    plain_of,
    steps_below,
    weights_of_leaf,
)
from tensornp.models.names.quoted import unique_names
from tensornp.models.optimizers import GROUPS, NAMES, PARAMS, STATE, params_of, told_names

_MAX_SAID = 100_000
"""Numbers and texts that are kept."""
_MAX_IN_ROW = 100
"""Numbers and texts of a list or a tuple that a group has as an option."""
_WRAPPED = ("optimizer", "_optimizer")
"""Attributes by which an optimizer holds the one that it stands for."""
_HIDDEN = f"{STATE} and {GROUPS} of the optimizer are no attributes of its own; nothing of what it gives is listed"


@outside_modes
def contents_of_optimizer(
    optimizer: Any, expression: str, model: torch.nn.Module | None, names_of: Callable[[Any], Mapping[int, str]]
) -> Contents:
    """Return the states of an optimizer, its group settings, and the problems.

    Names come from the optimizer, else from `model`, else from `names_of(optimizer)`, which maps identities to names.
    An unnamed parameter is named by its place. States of objects in no group come last.
    """
    optimizer, expression = _keeper_of(optimizer, expression)
    attributes = object.__getattribute__(optimizer, "__dict__")
    state, listing, groups = attributes.get(STATE, {}), _Listing(), _groups_of(optimizer)
    for attribute, held in items_of(attributes):
        called = key_of((attribute,))
        # Attributes that begin so are hooks.
        if called not in (STATE, GROUPS, "defaults") and not called.startswith("_optimizer_"):
            listing.unlisted.note(called, held)
    by_object: Mapping[int, str] = {id(entry.tensor): entry.name for entry in parameters_of(model) or ()}
    if not by_object and not all(map(told_names, groups)):
        by_object = names_of(optimizer)
    number, known, is_of_all = -1, set[int](), issubclass(type(optimizer), torch.optim.LBFGS)
    for i, group in enumerate(groups):
        listing.add_options(group, i, f"{expression}.{GROUPS}[{i}]")
        told = told_names(group)
        for j, parameter in enumerate(params_of(group)):
            number += 1
            known.add(id(parameter))
            listing.unlisted.is_listed(parameter)
            name = told.get(j) or by_object.get(id(parameter)) or f"{GROUPS}[{i}].params[{j}]"
            code = f"{expression}.{STATE}[{expression}.{GROUPS}[{i}]['params'][{j}]]"
            # Not by `[]`, which would give it a state; a parameter is its key by identity.
            held = dict.get(state, parameter) if isinstance(state, dict) else None
            is_empty = held is None or (issubclass(type(held), dict) and not held)
            why = "no state yet" if is_empty else "its state has no tensor"
            why = "the first parameter has the state of all" if is_of_all and number and is_empty else why
            saved = f"{STATE}.{number}"
            if not listing.add({} if is_empty else held, f"{STATE}.{name}", code, saved, saved):
                device = weight_of("", "", parameter, "").location
                pending = nothing(f"{STATE}.{name}", STATE, code, why, device, is_pending=True)
                listing.found.append(pending._with_(_saved_as=(saved,)))
    if not isinstance(state, dict):
        listing.unlisted.note(STATE, state)
    for key, held in items_of(state) if isinstance(state, dict) else ():
        if id(key) not in known:
            name = f"{STATE}.{key_of((key,))}"
            listing.add(held, name, _code_of(f"{expression}.{STATE}", key), name, "")
    hidden = [] if _keeps_states(attributes) else [NotListed(_HIDDEN)]
    names = unique_names([entry.name for entry in listing.found])
    entries = [entry._with_(name=name) for entry, name in zip(listing.found, names, strict=True)]
    for entry in entries:
        listing.unlisted.is_listed(entry.tensor)
    return Contents(entries, listing.metadata, [*hidden, *listing.unlisted.problems()])


class _Listing:
    """The weights of an optimizer, and its plain values."""

    def __init__(self) -> None:
        self.unlisted, self.metadata = Unlisted(), Beside()
        self.found: list[WeightEntry] = []

    def add_options(self, group: dict[str, Any], number: int, code: str) -> None:
        """List the options of a group: a learning rate may be a tensor."""
        for key, value in items_of(group):
            called = key_of((key,))
            place = f"{GROUPS}[{number}].{called}"
            is_row = type(value) in (tuple, list) and 0 < len(value) <= _MAX_IN_ROW and all(map(is_plain_value, value))
            if is_row and called not in (PARAMS, NAMES):
                self.metadata[place] = value
            elif called not in (PARAMS, NAMES):
                self.add(value, f"{GROUPS}.{number}.{called}", _code_of(code, key), place)

    def add(self, held: Any, name: str, code: str, plain: str, saved: str | None = None) -> bool:
        """List an object, and return whether it has tensors; those of a state are `saved` by another name."""
        has_tensors = False
        for path, leaf in islice(leaves(held, (None, "")), MAX_LEAVES):
            keys = steps_below(path) if path is not None else []
            tail, value = "".join(f".{key_of(key)}" for key in keys), plain_of(leaf)
            if is_plain_value(value):
                if len(self.metadata) < _MAX_SAID:
                    self.metadata[plain + tail] = value
                continue
            reached = code + "".join(map(bracket_of, keys)) if code and is_writable(keys) else ""
            own = [*weights_of_leaf(leaf, name + tail, reached)]
            for entry in own:
                has_tensors = True
                made = entry if saved is None else entry._with_(kind=STATE)
                self.found.append(made._with_(_saved_as=(saved + tail,) if saved else ()))
            if not own:
                self.unlisted.note(name + tail, leaf, len(keys))
        return has_tensors


def _code_of(code: str, key: Any) -> str:
    return code + bracket_of((key,)) if is_writable([(key,)]) else ""


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


def names_in(optimizer: Any, modules: Iterable[tuple[str, Any]]) -> dict[int, str]:
    """Return parameter names by identity: in the first module that has all of them, else in all modules."""
    wanted = {id(one) for group in _groups_of(optimizer) for one in params_of(group)}
    found: dict[int, str] = {}
    for name, module in modules:
        own = {id(one.tensor): one.name for one in parameters_of(module) or ()}
        if wanted <= own.keys():
            return own
        found = {key: joined(name, called) for key, called in own.items() if key in wanted} | found
    return found


def modules_in(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((name, value) for name, value in namespace.items() if issubclass(type(value), torch.nn.Module))

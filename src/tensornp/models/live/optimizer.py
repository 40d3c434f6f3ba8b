"""List the state of an optimizer by the names of the parameters that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from tensornp.core.tensor.containers import items_of
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.entries.entry import nothing
from tensornp.models.entries.in_memory import weight_of
from tensornp.models.live.listing import Listing, joined, plain_of
from tensornp.models.live.module import list_module
from tensornp.models.optimizers import GROUPS, NAMES, PARAMS, STATE, params_of, told_names

_WRAPPED = ("optimizer", "_optimizer")
"""Attributes by which an optimizer of accelerate or Lightning holds the one that it stands for."""
Modules = Iterable[tuple[str, Any]]


def list_optimizer(listing: Listing, optimizer: Any, name: str, code: str, modules: Iterable[Modules]) -> None:
    """List the states of an optimizer and the settings of its groups; no code of the user runs.

    Names come from the optimizer, else from the first `modules` that have its parameters. An unnamed parameter is named
    by its place. States of objects in no group come last.
    """
    attributes = object.__getattribute__(optimizer, "__dict__")
    inner = next((one for one in _WRAPPED if issubclass(type(attributes.get(one)), torch.optim.Optimizer)), "")
    if inner and STATE not in attributes:
        optimizer, code = attributes[inner], code and f"{code}.{inner}"
        attributes = object.__getattribute__(optimizer, "__dict__")
    state, groups = attributes.get(STATE), attributes.get(GROUPS)
    groups = [one for one in groups if isinstance(one, dict)] if isinstance(groups, list) else []
    if not isinstance(state, dict) or not groups:
        listing.note(name or code, optimizer)
        return
    parameters = [one for group in groups for one in params_of(group)]
    listing.seen |= set(map(id, parameters))
    names: Mapping[int, str] = {}
    if not all(map(told_names, groups)):
        names = next(filter(None, (_names_in(parameters, some) for some in modules)), {})
    number = -1
    for i, group in enumerate(groups):
        options = {key: value for key, value in items_of(group) if key not in (PARAMS, NAMES)}
        place = f"{GROUPS}.{i}"
        _list_tree(listing, options, joined(name, place), code and f"{code}.{GROUPS}[{i}]", place)
        told = told_names(group)
        for j, parameter in enumerate(params_of(group)):
            number += 1
            its_name = joined(name, STATE, told.get(j) or names.get(id(parameter)) or f"{GROUPS}[{i}].params[{j}]")
            reached = code and f"{code}.{STATE}[{code}.{GROUPS}[{i}]['params'][{j}]]"
            saved = f"{STATE}.{number}"
            # Not by `[]`, which would give it a state; a parameter is its key by identity.
            held = dict.get(state, parameter)
            is_empty = held is None or (issubclass(type(held), dict) and not held)
            if is_empty or not _list_tree(listing, held, its_name, reached, saved, joined(name, saved)):
                device = weight_of("", "", parameter, "").location
                why = "no state yet" if is_empty else "its state has no tensor"
                pending = nothing(its_name, STATE, reached, why, device)
                listing.entries.append(pending._with_(_saved_as=(saved,), _is_pending=True))
    known = set(map(id, parameters))
    for key, held in items_of(state):
        if id(key) not in known:
            _list_tree(listing, {key: held}, joined(name, STATE), code and f"{code}.{STATE}", STATE)


def _list_tree(listing: Listing, tree: Any, name: str, code: str, saved: str, plain: str = "") -> bool:
    """List an object, and return whether it has tensors, which are `saved` by another name.

    Numbers in the state of a parameter are named as they are saved, by `plain`.
    """
    has_tensors = False
    for leaf in listing.leaves(tree, name, code):
        tail = leaf.name.removeprefix(name)
        its_name = plain + tail if plain and is_plain_value(plain_of(leaf.what)) else leaf.name
        entry = listing.weight(leaf._replace(name=its_name))
        if entry is not None:
            has_tensors, kind = True, STATE if saved.startswith(STATE) else entry.kind
            listing.entries.append(entry._with_(kind=kind, _saved_as=(saved + tail,)))
    return has_tensors


def _names_in(parameters: list[Any], modules: Modules) -> dict[int, str]:
    """Return parameter names by identity: in the first module that has all of them, else in all modules."""
    wanted = set(map(id, parameters))
    found: dict[int, str] = {}
    for name, module in modules:
        below = Listing()
        list_module(below, module, "", "")
        # A tied parameter has its first name.
        own = {id(one.tensor): one.name for one in below.entries[::-1] if one.kind == "parameter"}
        if wanted <= own.keys():
            return own
        found = {key: f"{name}.{called}" for key, called in own.items() if key in wanted} | found
    return found

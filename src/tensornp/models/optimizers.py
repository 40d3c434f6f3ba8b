"""Find state dicts of optimizers, and the parameter that each state belongs to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.paths import is_plain_value
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.names.quoted import shown_name

GROUPS, STATE, PARAMS, NAMES = "param_groups", "state", "params", "param_names"
_MAX_DEPTH = 5
"""Keys that lead to a state dict, as of ``["optimizer_states"][0]``."""
_MAX_OPTIMIZERS = 100


def params_of(group: Any) -> Sequence[Any]:
    """Return the parameters of a group, or in a state dict the keys of their states."""
    params = group.get(PARAMS) if _is_mapping(group) else ()
    return params if isinstance(params, (list, tuple)) else ()


def told_names(group: Any) -> dict[int, str]:
    """Return the names that a group gives to its parameters, by their places."""
    names = group.get(NAMES) if _is_mapping(group) else ()
    if not isinstance(names, (list, tuple)) or len(names) != len(params_of(group)):
        return {}
    return {place: name for place, name in enumerate(names) if type(name) is str and name}


class SavedOptimizer:
    """A state dict of an optimizer.

    `params` are the keys of its parameters. `states` have the parameter's place and the rest of the name, for each
    state that has no name.
    """

    def __init__(self, groups: Sequence[Any]) -> None:
        self.params: list[Any] = []
        self.num_groups = 0
        self.states: dict[str, tuple[int, str]] = {}
        self._names: dict[int, str] = {}
        for group in groups:
            first, params = len(self.params), params_of(group)
            self._names |= {first + place: name for place, name in told_names(group).items()}
            self.params.extend(params)
            self.num_groups += bool(params)
        # torch.distributed.checkpoint makes texts of the keys of states.
        self._numbers = {_text_of(key): number for number, key in enumerate(self.params)}

    def put(self, rest: str, entry: WeightEntry) -> WeightEntry:
        """Return a weight as a state or as an option of a group; `rest` is its name in the state dict."""
        if not rest.startswith(f"{STATE}."):
            return entry._with_(_saved_as=(rest,)) if rest.startswith(f"{GROUPS}.") else entry
        parts = rest.split(".")[1:]
        # Keys may be names, which have dots.
        ends = (end for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in self._numbers)
        end = next(ends, 0)
        if not end:
            return entry._with_(kind=STATE, _saved_as=(rest,))
        number, tail = self._numbers[".".join(parts[:end])], "".join(f".{one}" for one in parts[end:])
        is_name = type(self.params[number]) is str
        made = entry._with_(kind=STATE, _saved_as=(*[rest] * is_name, f"{STATE}.{number}{tail}"))
        if number in self._names:
            return _named(made, self._names[number], tail)
        if not self._names and not is_name:
            self.states[entry.name] = number, tail
        return made

    def why_not_of(self, parameters: Sequence[WeightEntry]) -> str:
        """Return why a model with these parameters does not name the states; empty if it does."""
        if self._names or any(type(key) is not int for key in self.params):
            return ""
        if len(parameters) == len(self.params) and self.num_groups < 2:
            return ""
        groups = f"the optimizer has {len(self.params):,} in {counted(self.num_groups, 'group')}"
        return f"which has {len(parameters):,} parameters, where {groups} without param_names"


def _named(entry: WeightEntry, name: str, tail: str) -> WeightEntry:
    saved_as = (f"{STATE}.{name}{tail}", *(entry._saved_as or ()))
    return noted(entry._with_(_saved_as=saved_as), f"of {shown_name(name)}")


def named_by(
    entries: list[WeightEntry], optimizers: Sequence[SavedOptimizer], parameters: Sequence[WeightEntry] | None
) -> list[WeightEntry]:
    """Return the weights, with names for saved states from the `parameters` of a model.

    BadRequestError if there are optimizers, and it is the model of none.
    """
    if parameters is None:
        return entries
    why = [one.why_not_of(parameters) for one in optimizers]
    if why and all(why):
        raise BadRequestError(f"the states are not named by this model, {why[0]}; leave model out")
    told: dict[str, tuple[int, str]] = {}
    for one, reason in zip(optimizers, why, strict=True):
        told |= {} if reason else one.states
    numbered = ((one, told.get(one.name)) for one in entries)
    return [one if place is None else _named(one, parameters[place[0]].name, place[1]) for one, place in numbered]


def optimizers_in(root: Any, entries: list[WeightEntry]) -> tuple[list[SavedOptimizer], list[WeightEntry]]:
    """Return the state dicts of optimizers in a tree, and the weights, some as states."""
    found: list[SavedOptimizer] = []
    made = list(entries)
    for name, groups in islice(_state_dicts(root, "", set(), _MAX_DEPTH), _MAX_OPTIMIZERS):
        found.append(SavedOptimizer(groups))
        begins = (f"{name}{STATE}.", f"{name}{GROUPS}.")
        for i, entry in enumerate(made):
            if entry.name.startswith(begins):
                made[i] = found[-1].put(entry.name.removeprefix(name), entry)
    return found, made


def _state_dicts(tree: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, Sequence[Any]]]:
    groups = _groups_of(tree)
    if groups is not None:
        yield name, groups
        return
    seen.add(id(tree))
    is_list = type(tree) is list or type(tree) is tuple
    for key, value in list(tree.items()) if _is_mapping(tree) else enumerate(tree) if is_list else ():
        is_container = _is_mapping(value) or type(value) is list or type(value) is tuple
        if is_container and _text_of(key) and id(value) not in seen and depth:
            yield from _state_dicts(value, f"{name}{key}.", seen, depth - 1)


def _text_of(key: Any) -> str:
    """Return a key as a text; empty if it is neither a text nor a small number."""
    return key if type(key) is str else str(key) if type(key) is int and key.bit_length() < 64 else ""


def _is_mapping(value: Any) -> bool:
    return type(value) is dict or type(value) is OrderedDict


def is_saved_optimizer(obj: Any) -> bool:
    """Return whether `obj` is the state dict of an optimizer, even without tensors."""
    return type(obj) is dict and _groups_of(obj) is not None


def _groups_of(table: Any) -> Sequence[Any] | None:
    if not _is_mapping(table):
        return None
    if STATE not in table and GROUPS not in table:
        # As torch.distributed.checkpoint flattens them. A part of a model with such a name has tensors alone.
        keys = [key for key in table if type(key) is str]
        is_one = any(key.startswith(f"{STATE}.") for key in keys)
        has_groups = any(is_plain_value(table[key]) for key in keys if key.startswith(f"{GROUPS}."))
        return () if is_one and has_groups else None
    state, groups = table.get(STATE), table.get(GROUPS)
    if not _is_mapping(state):
        return None
    if type(groups) is dict and groups and all(type(key) is int for key in groups):
        # torch.distributed.checkpoint keeps a list by its places.
        return list(groups.values())
    return groups if type(groups) in (list, tuple) else None


def number_told(entries: Iterable[WeightEntry]) -> str:
    """Return "137 weights and 387 optimizer states", without names that are registered as None."""
    every = (one for one in entries if not one._is_nothing)
    own = [(one.kind == STATE and STATE in one.name.split("."), one._is_pending) for one in every]
    num_weights = sum(not is_state for is_state, _ in own)
    told = [counted(num_weights, "weight")] if num_weights or not own else []
    if num_weights < len(own):
        told.append(counted(own.count((True, False)), "optimizer state"))
    return " and ".join(told)

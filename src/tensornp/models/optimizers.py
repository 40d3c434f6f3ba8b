"""Find state dicts of optimizers, and the parameter of each state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.names.quoted import shown_name

GROUPS, STATE, PARAMS, NAMES = "param_groups", "state", "params", "param_names"
_MAX_DEPTH = 5
"""Keys that lead to a state dict, as of ``["optimizer_states"][0]``."""
_MAX_OPTIMIZERS = 100
_CONTAINERS = (dict, OrderedDict, list, tuple)


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
    """A state dict of an optimizer, by the groups of its parameters."""

    def __init__(self, groups: Sequence[Any]) -> None:
        self._params: list[Any] = []
        self._names: dict[int, str] = {}
        for group in groups:
            first = len(self._params)
            self._names |= {first + place: name for place, name in told_names(group).items()}
            self._params.extend(params_of(group))
        # torch.distributed.checkpoint makes texts of the keys of states.
        self._numbers = {_text_of(key): number for number, key in enumerate(self._params)}

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
        saved_as = f"{STATE}.{number}{tail}"
        if (name := self._names.get(number)) is not None:
            made = entry._with_(kind=STATE, _saved_as=(f"{STATE}.{name}{tail}", saved_as))
            return noted(made, f"of {shown_name(name)}")
        is_name = type(self._params[number]) is str
        return entry._with_(kind=STATE, _saved_as=(*[rest] * is_name, saved_as))


def with_states(root: Any, entries: list[WeightEntry]) -> list[WeightEntry]:
    """Return the weights in a tree, those in state dicts of optimizers as states."""
    made = list(entries)
    for name, groups in islice(_state_dicts(root, "", set(), _MAX_DEPTH), _MAX_OPTIMIZERS):
        found, begins = SavedOptimizer(groups), (f"{name}{STATE}.", f"{name}{GROUPS}.")
        for i, entry in enumerate(made):
            if entry.name.startswith(begins):
                made[i] = found.put(entry.name.removeprefix(name), entry)
    return made


def _state_dicts(tree: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, Sequence[Any]]]:
    groups = _groups_of(tree)
    if groups is not None:
        yield name, groups
        return
    if type(tree) not in _CONTAINERS:
        return
    seen.add(id(tree))
    for key, value in list(tree.items()) if _is_mapping(tree) else enumerate(tree):
        if type(value) in _CONTAINERS and _text_of(key) and id(value) not in seen and depth:
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
    if _is_mapping(groups) and groups:
        # torch.distributed.checkpoint keeps a list by its places, or the options of a parameter by its name.
        places = {_text_of(key): key for key in groups}
        in_order = sorted(places, key=lambda text: (len(text), text))
        return [groups[places[text]] for text in in_order] if all(map(str.isdecimal, places)) else ()
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

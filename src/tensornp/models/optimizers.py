"""Find state dicts of optimizers, and the parameter that each state belongs to."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.names.quoted import shown_name

GROUPS, STATE, PARAMS, NAMES = "param_groups", "state", "params", "param_names"
_MAX_DEPTH = 4
"""Keys that lead to a state dict, as ``["optimizer_states"][0]`` are two."""
_MAX_LOOKED_INTO = 10_000
_MAX_PARAMETERS = 1_000_000
_MAX_JOINED = 10
"""Keys of one state that were joined to its parameter's name: Shampoo has several."""
_CONTAINERS = frozenset(map(id, (dict, OrderedDict, list, tuple)))
"""Classes by identity: a metaclass of the user's may compute hashes."""

Path = tuple[Any, ...]


def params_of(group: Mapping[Any, Any]) -> Sequence[Any]:
    """Return the parameters of a group, or in a state dict the keys of their states."""
    params = group.get(PARAMS)
    return params if isinstance(params, (list, tuple)) else ()


def told_names(group: Mapping[Any, Any]) -> dict[int, str]:
    """Return the names that a group gives to its parameters, by their places."""
    names = group.get(NAMES)
    if not isinstance(names, (list, tuple)) or len(names) != len(params_of(group)):
        return {}
    return {place: name for place, name in enumerate(names) if type(name) is str and name}


class SavedOptimizer:
    """A state dict of an optimizer."""

    def __init__(self, path: Path, groups: Iterable[Mapping[Any, Any]], *, is_flat: bool = False) -> None:
        self.path, self.is_flat = path, is_flat
        self.params: list[Any] = []
        self._names: dict[str, str] = {}
        self._num_groups = 0
        for group in groups:
            params = params_of(group)[: _MAX_PARAMETERS - len(self.params)]
            names = told_names(group) if params else {}
            self._num_groups += bool(params)
            self._names |= {_text_of(params[place]): name for place, name in names.items() if place < len(params)}
            self.params.extend(params)
        # torch.distributed.checkpoint makes texts of the keys of states.
        self._numbers = {_text_of(key): number for number, key in enumerate(self.params)}
        self._states: dict[str, list[tuple[str, WeightEntry]]] = {}

    def put(self, keys: Path, entry: WeightEntry) -> WeightEntry:
        """Return the weight at `keys` as a state or as an option of a group."""
        keys = self._apart(keys) if self.is_flat else keys
        if not keys or keys[0] != STATE:
            is_option = bool(keys) and keys[0] == GROUPS
            return entry._with_(_saved_as=(".".join(map(str, keys)),)) if is_option else entry
        saved_as = entry._saved_as
        if key := _text_of(keys[1]) if len(keys) > 1 else "":
            tail = "".join(f".{one}" for one in keys[2:])
            self._states.setdefault(key, []).append((tail, entry))
            if key in self._numbers:
                number = self._numbers[key]
                called = [f"{STATE}.{key}{tail}"] if type(self.params[number]) is str else []
                called += [] if self.is_flat else [f"{STATE}.{number}{tail}"]
                saved_as = tuple(called)
        return entry._with_(kind="state", _saved_as=saved_as)

    def _apart(self, keys: Path) -> Path:
        """Split joined keys without splitting the name of a parameter."""
        section, _, joined = keys[0].partition(".") if keys and type(keys[0]) is str else ("", "", "")
        if section in (STATE, GROUPS):
            for num in range(1, _MAX_JOINED):
                name, *rest = joined.rsplit(".", num)
                if name in self._numbers:
                    return (section, name, *rest, *keys[1:])
        return keys

    def named(self, parameters: Sequence[WeightEntry] | None) -> tuple[dict[str, tuple[str, str]], str]:
        """Return the parameter and the name of each state, or why `parameters` do not fit.

        Parameters are taken in their order, as `model.parameters()` gives them to an optimizer.
        """
        names, why = self._names, ""
        if not names and parameters is not None and all(type(key) is int for key in self.params):
            if len(parameters) != len(self.params) or self._num_groups > 1:
                groups = f"the optimizer has {len(self.params):,} in {counted(self._num_groups, 'group')}"
                why = f"which has {len(parameters):,} parameters, where {groups} without param_names"
            names = {} if why else {_text_of(key): one.name for key, one in zip(self.params, parameters, strict=True)}
        found = {
            state.name: (name, f"{STATE}.{name}{tail}")
            for key, name in names.items()
            for tail, state in self._states.get(key, ())
        }
        return found, why


def optimizers_in(
    root: Any, paths: Iterable[Path], entries: list[WeightEntry]
) -> tuple[list[SavedOptimizer], list[WeightEntry]]:
    """Return the state dicts of optimizers in a tree, and the weights, some as states.

    `paths` are the keys that lead to each weight.
    """
    found: dict[Path, SavedOptimizer] = {}
    met: set[int] = set()
    num_left = _MAX_PARAMETERS
    waiting: deque[tuple[Path, Any]] = deque([((), root)])
    while waiting and len(met) < _MAX_LOOKED_INTO and num_left > 0:
        path, value = waiting.popleft()
        if not _is_container(value) or id(value) in met:
            continue
        met.add(id(value))
        groups = _groups_of(value)
        if groups is not None:
            own = [one for one in islice(groups, num_left) if _is_container(one) and isinstance(one, Mapping)]
            found[path] = SavedOptimizer(path, own, is_flat=STATE not in value)
            # A small file can have many that share long lists.
            num_left -= len(groups) + len(found[path].params)
        elif len(path) < _MAX_DEPTH:
            pairs = list(value.items()) if isinstance(value, Mapping) else enumerate(value)
            below = (((*path, key), one) for key, one in pairs if is_number_or_name(key) and _is_container(one))
            waiting.extend(islice(below, max(_MAX_LOOKED_INTO - len(waiting), 0)))
    made = list(entries)
    for i, keys in enumerate(paths if found else ()):
        for num in range(min(len(keys), _MAX_DEPTH + 1)):
            if keys[:num] in found:
                made[i] = found[keys[:num]].put(keys[num:], made[i])
    return list(found.values()), made


def with_names(
    entries: list[WeightEntry], optimizers: Iterable[SavedOptimizer], parameters: Sequence[WeightEntry] | None
) -> tuple[list[WeightEntry], list[str]]:
    """Note the parameter of each state, and return why optimizers have no names.

    `parameters` are those of the model, in its order; None without a model.
    """
    told = [one.named(parameters) for one in optimizers]
    names = {state: found for states, _ in told for state, found in states.items()}
    made = list(entries)
    for i, one in enumerate(entries if names else ()):
        if one.name in names:
            parameter, called = names[one.name]
            made[i] = noted(one._with_(_saved_as=(called, *(one._saved_as or ()))), f"of {shown_name(parameter)}")
    return made, [why for _, why in told]


def is_number_or_name(key: Any) -> bool:
    """Return whether a key is a plain integer or text, and no subclass of these."""
    return type(key) is int or type(key) is str


def _text_of(key: Any) -> str:
    """Return a key as a text; empty if it is neither a text nor a small number."""
    return key if type(key) is str else str(key) if type(key) is int and key.bit_length() < 64 else ""


def _is_container(value: Any) -> bool:
    return id(type(value)) in _CONTAINERS


def is_saved_optimizer(obj: Any) -> bool:
    """Return whether `obj` is the state dict of an optimizer, even without tensors."""
    return type(obj) is dict and _groups_of(obj) is not None


def _groups_of(table: Any) -> Sequence[Any] | None:
    """Return the groups in the state dict of an optimizer, None for other values."""
    if not isinstance(table, Mapping):
        return None
    state, groups = table.get(STATE), table.get(GROUPS)
    if not _is_container(state) or not isinstance(state, Mapping):
        return _flat_groups(table) if STATE not in table and GROUPS not in table else None
    if type(groups) is dict and groups and all(type(key) is int for key in groups):
        # torch.distributed.checkpoint keeps a list by its places.
        return list(groups.values())
    return groups if type(groups) in (list, tuple) else None


def _flat_groups(table: Mapping[Any, Any]) -> Sequence[Any] | None:
    """Return a group of the parameters in joined keys: ``param_groups.fc.weight.lr``."""
    begins, ends = f"{GROUPS}.", ".lr"
    options = {key: value for key, value in table.items() if type(key) is str and key.startswith(begins)}
    names = [key[len(begins) : -len(ends)] for key in options if key.endswith(ends)]
    has_states = bool(names) and any(type(key) is str and key.startswith(f"{STATE}.") for key in table)
    # A part of a model with such a name has tensors alone.
    return [{PARAMS: names}] if has_states and any(map(is_plain_value, options.values())) else None


def number_told(entries: Iterable[WeightEntry]) -> str:
    """Return "137 weights and 387 optimizer states", without names that are registered as None."""
    every = (one for one in entries if not one._is_nothing)
    own = [(one.kind == "state" and STATE in one.name.split("."), one._is_pending) for one in every]
    num_weights = sum(not is_state for is_state, _ in own)
    told = [counted(num_weights, "weight")] if num_weights or not own else []
    if num_weights < len(own):
        told.append(counted(own.count((True, False)), "optimizer state"))
    return " and ".join(told)

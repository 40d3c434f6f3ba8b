"""Find state dicts of optimizers, and the parameter that each state belongs to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.names.quoted import shown_name

GROUPS, STATE, PARAMS, NAMES = "param_groups", "state", "params", "param_names"
_MAX_DEPTH = 5
"""Keys among which a state dict begins, as of ``["optimizer_states"][0]["state"]``."""
Path = tuple[Any, ...]


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

    `params` are the keys of its parameters, and `states` have the place and the rest of the name of each state.
    """

    def __init__(self, groups: Sequence[Any]) -> None:
        self.params: list[Any] = []
        self.names: dict[int, str] = {}
        self.num_groups = 0
        for group in groups:
            first, params = len(self.params), params_of(group)
            self.names |= {first + place: name for place, name in told_names(group).items()}
            self.params.extend(params)
            self.num_groups += bool(params)
        # torch.distributed.checkpoint makes texts of the keys of states.
        self._numbers = {_text_of(key): number for number, key in enumerate(self.params)}
        self.states: dict[str, tuple[int, str]] = {}

    def put(self, keys: Path, entry: WeightEntry) -> WeightEntry:
        """Return the weight at `keys` as a state or as an option of a group."""
        joined = ".".join(map(str, keys))
        if keys[0] == GROUPS:
            return entry._with_(_saved_as=(joined,))
        # Keys may be joined to one: ``state.fc.weight.exp_avg``.
        if keys[0] != STATE:
            return entry._with_(kind="state", _saved_as=(joined,)) if keys[0].startswith(f"{STATE}.") else entry
        number = self._numbers.get(_text_of(keys[1]) if len(keys) > 1 else "")
        if number is None:
            return entry._with_(kind="state")
        tail = "".join(f".{one}" for one in keys[2:])
        self.states[entry.name] = number, tail
        called = (joined,) if type(self.params[number]) is str else ()
        return entry._with_(kind="state", _saved_as=(*called, f"{STATE}.{number}{tail}"))


def optimizers_in(
    root: Any, paths: Iterable[Path], entries: list[WeightEntry]
) -> tuple[list[SavedOptimizer], list[WeightEntry]]:
    """Return the state dicts of optimizers with tensors in a tree, and the weights, some as states.

    `paths` are the keys that lead to each weight.
    """
    found: dict[Path, SavedOptimizer | None] = {}

    def optimizer_at(path: Path) -> SavedOptimizer | None:
        if path not in found:
            groups = _groups_of(_at(root, path))
            found[path] = SavedOptimizer(groups) if groups is not None else None
        return found[path]

    # The root is one even without tensors.
    optimizer_at(())
    made = list(entries)
    for i, keys in enumerate(paths):
        for num, key in enumerate(keys[:_MAX_DEPTH]):
            is_section = type(key) is str and key.partition(".")[0] in (STATE, GROUPS)
            if is_section and (optimizer := optimizer_at(keys[:num])) is not None:
                made[i] = optimizer.put(keys[num:], made[i])
    return [one for one in found.values() if one is not None], made


def _at(tree: Any, keys: Path) -> Any:
    for key in keys:
        if not is_number_or_name(key) or not (_is_mapping(tree) or type(tree) in (list, tuple)):
            return None
        tree = tree[key]
    return tree


def with_names(
    entries: list[WeightEntry], optimizers: Iterable[SavedOptimizer], parameters: Sequence[WeightEntry] | None
) -> tuple[list[WeightEntry], list[str]]:
    """Note the parameter of each state, and return why optimizers have no names.

    `parameters` are those of the model, in its order; None without a model.
    """
    told: dict[str, tuple[str, str]] = {}
    why: list[str] = []
    for one in optimizers:
        names, reason = one.names, ""
        if not names and parameters is not None and all(type(key) is int for key in one.params):
            if len(parameters) == len(one.params) and one.num_groups < 2:
                names = {number: each.name for number, each in enumerate(parameters)}
            else:
                groups = f"the optimizer has {len(one.params):,} in {counted(one.num_groups, 'group')}"
                reason = f"which has {len(parameters):,} parameters, where {groups} without param_names"
        told |= {state: (names[number], tail) for state, (number, tail) in one.states.items() if number in names}
        why.append(reason)
    made = list(entries)
    for i, each in enumerate(entries if told else ()):
        if each.name in told:
            name, tail = told[each.name]
            saved_as = (f"{STATE}.{name}{tail}", *(each._saved_as or ()))
            made[i] = noted(each._with_(_saved_as=saved_as), f"of {shown_name(name)}")
    return made, why


def is_number_or_name(key: Any) -> bool:
    """Return whether a key is a plain integer or text, and no subclass of these."""
    return type(key) is int or type(key) is str


def _text_of(key: Any) -> str:
    """Return a key as a text; empty if it is neither a text nor a small number."""
    return key if type(key) is str else str(key) if type(key) is int and key.bit_length() < 64 else ""


def _is_mapping(value: Any) -> bool:
    return type(value) is dict or type(value) is OrderedDict


def is_saved_optimizer(obj: Any) -> bool:
    """Return whether `obj` is the state dict of an optimizer, even without tensors."""
    return type(obj) is dict and _groups_of(obj) is not None


def _groups_of(table: Any) -> Sequence[Any] | None:
    """Return the groups in the state dict of an optimizer, None for other values."""
    if not _is_mapping(table):
        return None
    if STATE not in table and GROUPS not in table:
        return () if _has_joined_keys(table) else None
    state, groups = table.get(STATE), table.get(GROUPS)
    if not _is_mapping(state):
        return None
    if type(groups) is dict and groups and all(type(key) is int for key in groups):
        # torch.distributed.checkpoint keeps a list by its places.
        return list(groups.values())
    return groups if type(groups) in (list, tuple) else None


def _has_joined_keys(table: Mapping[Any, Any]) -> bool:
    """Return whether keys are joined to ``param_groups.fc.weight.lr``, as DCP flattens them."""
    keys = [key for key in table if type(key) is str]
    options = [table[key] for key in keys if key.startswith(f"{GROUPS}.")]
    # A part of a model with such a name has tensors alone.
    return any(key.startswith(f"{STATE}.") for key in keys) and any(map(is_plain_value, options))


def number_told(entries: Iterable[WeightEntry]) -> str:
    """Return "137 weights and 387 optimizer states", without names that are registered as None."""
    every = (one for one in entries if not one._is_nothing)
    own = [(one.kind == "state" and STATE in one.name.split("."), one._is_pending) for one in every]
    num_weights = sum(not is_state for is_state, _ in own)
    told = [counted(num_weights, "weight")] if num_weights or not own else []
    if num_weights < len(own):
        told.append(counted(own.count((True, False)), "optimizer state"))
    return " and ".join(told)

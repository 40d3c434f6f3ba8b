"""The state dicts of optimizers, alone or in a checkpoint, in memory or in a file: whose state each of them is."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from tensornp.core.tensor.paths import is_plain_value
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.names.quoted import shown_name
from tensornp.models.optimizers.param_groups import GROUPS, PARAMS, STATE, params_of, told_names

_MAX_DEPTH = 4
"""Keys that lead to a state dict, as ``["optimizer_states"][0]`` are two."""
_MAX_LOOKED_INTO = 10_000
_MAX_PARAMETERS = 1_000_000
_MAX_BITS = 64
_MAX_JOINED = 10
"""Keys of one state that were joined to its parameter's name: Shampoo has several."""

_OF_ELEMENTS = frozenset(
    "exp_avg exp_avg_sq max_exp_avg_sq exp_inf momentum_buffer square_avg grad_avg acc_delta "
    "sum prev step_size ax".split()
)
"""What optimizers keep of each element of a parameter: Adafactor keeps rows and columns, LBFGS vectors of all."""

AsContainer = Callable[[Any], Mapping[Any, Any] | Sequence[Any] | None]
"""Gives the mapping or the list that a value is; None for any other one."""


class SavedOptimizer:
    """A state dict of an optimizer.

    Attributes
    ----------
    path : tuple
        The keys that lead to it.
    params : list
        The keys of the states, in the order of its groups.
    told : dict
        The names that it gives to them itself.
    is_flat : bool
        Whether its keys are joined by dots, as by `flatten_optimizer_state_dict` of torch: ``state.fc.weight.exp_avg``.
        The order of its parameters is that of whoever has saved the last of them.
    """

    def __init__(
        self, path: tuple[Any, ...], groups: Iterable[Mapping[Any, Any]], most: int, *, is_flat: bool = False
    ) -> None:
        self.path, self.is_flat = path, is_flat
        self.params: list[Any] = []
        self._sizes: list[int] = []
        self.told: dict[int | str, str] = {}
        for group in groups:
            params = params_of(group)[: most - len(self.params)]
            told = told_names(group) if params else {}
            self.params.extend(params)
            self._sizes.append(len(params))
            self.told |= {key: told[j] for j, key in enumerate(params) if is_number_or_name(key) and j in told}
        self._numbers = {key: number for number, key in enumerate(self.params) if is_number_or_name(key)}
        # torch.distributed.checkpoint makes texts of the keys of states, and not of those in the groups.
        of_texts = {str(key): key for key in self._numbers if type(key) is int and key.bit_length() < _MAX_BITS}
        self._of_texts = {text: key for text, key in of_texts.items() if text not in self._numbers}
        self._states: dict[int | str, list[tuple[str, str]]] = {}
        self._shapes: dict[int | str, list[tuple[Any, tuple[int, ...]]]] = {}

    def put(self, keys: tuple[Any, ...], entry: WeightEntry) -> WeightEntry:
        """Return a weight, which is a state, or an option of a group, if `keys` say so, which lead to it from here."""
        keys = self._apart(keys) if self.is_flat else keys
        if not keys or keys[0] != STATE:
            # A tensor of a group, as a learning rate may be one, by its name where the optimizer is alone.
            is_option = bool(keys) and keys[0] == GROUPS
            return entry._with_(_saved_as=(".".join(map(str, keys)),)) if is_option else entry
        saved_as = entry._saved_as
        if len(keys) > 1 and is_number_or_name(keys[1]):
            key = self._of_texts.get(keys[1], keys[1])
            tail = "".join(f".{key}" for key in keys[2:])
            self._states.setdefault(key, []).append((tail, entry.name))
            if key in self._numbers:
                called = [f"{STATE}.{key}{tail}"] if type(key) is str else []
                called += [] if self.is_flat else [f"{STATE}.{self._numbers[key]}{tail}"]
                saved_as = tuple(called)
            if len(keys) == 3 and entry.shape is not None:
                self._shapes.setdefault(key, []).append((keys[2], entry.shape))
        return entry._with_(kind="state", _saved_as=saved_as)

    def _apart(self, keys: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the keys that were joined to one: of a parameter's name, the dots are its own."""
        section, _, joined = keys[0].partition(".") if keys and type(keys[0]) is str else ("", "", "")
        if section in (STATE, GROUPS):
            for num in range(1, _MAX_JOINED):
                name, *rest = joined.rsplit(".", num)
                if name in self._numbers:
                    return (section, name, *rest, *keys[1:])
        return keys

    def named(self, parameters: Sequence[WeightEntry] | None) -> tuple[dict[str, tuple[str, str]], str]:
        """Return to which parameter each state belongs, and what it is called by that; and why it cannot be told.

        The parameters are taken in their order, as `model.parameters()` gives them to an optimizer, if they are as
        many. What has texts as keys is named by them.
        """
        names, why = self.told, ""
        if not names and parameters is not None and all(type(key) is int for key in self.params):
            why = self._why_not_of(parameters)
            names = {} if why else {key: one.name for key, one in zip(self.params, parameters, strict=True)}
        found = {
            state: (name, f"{STATE}.{name}{tail}")
            for key, name in names.items()
            for tail, state in self._states.get(key, ())
        }
        return found, why

    def _why_unordered(self, parameters: Sequence[WeightEntry]) -> str:
        """Return why the order of the parameters is not told: several groups could have parameters of one shape."""
        left, own = iter(parameters), dict[object, int]()
        for number, size in enumerate(self._sizes):
            for one in islice(left, size):
                if own.setdefault(one.shape, number) != number:
                    many = f"where the optimizer has {len(self._sizes):,} groups and no param_names"
                    return f"whose order in it is not told, {many}"
        return ""

    def _why_not_of(self, parameters: Sequence[WeightEntry]) -> str:
        if len(parameters) != len(self.params):
            return f"which has {len(parameters):,} parameters, where the optimizer has {len(self.params):,}"
        if why := self._why_unordered(parameters):
            return why
        # Groups may have another order: a state of another shape than its parameter tells so.
        kept: dict[Any, list[tuple[Any, WeightEntry, tuple[int, ...]]]] = {}
        for key, one in zip(self.params, parameters, strict=True):
            for what, shape in self._shapes.get(key, ()):
                kept.setdefault(what, []).append((key, one, shape))
        for what, every in kept.items():
            is_of_elements = Counter(shape for *_, shape in every) == Counter(one.shape for _, one, _ in every)
            for key, one, shape in every if is_of_elements or what in _OF_ELEMENTS else ():
                if shape not in (one.shape, ()):
                    return f"whose {shown_name(one.name)} has shape {one.shape}, where state {key} has {shape}"
        return ""


def optimizers_in(
    root: Any, as_container: AsContainer, paths: Callable[[], Iterable[tuple[Any, ...]]], entries: list[WeightEntry]
) -> tuple[list[SavedOptimizer], list[WeightEntry]]:
    """Return the state dicts of optimizers in a tree, and the weights, of which those in them are of kind "state".

    `paths` gives the keys that lead to each weight.
    """
    found: list[SavedOptimizer] = []
    met: set[int] = set()
    num_groups, num_params = _MAX_LOOKED_INTO, _MAX_PARAMETERS
    waiting: deque[tuple[tuple[Any, ...], Any]] = deque([((), root)])
    while waiting and len(met) < _MAX_LOOKED_INTO:
        path, value = waiting.popleft()
        table = as_container(value)
        if table is None or id(value) in met:
            continue
        met.add(id(value))
        groups = _groups_of(table, as_container)
        if groups is not None:
            # Small files can have many that share long lists.
            own = [group for group in map(as_container, islice(groups, num_groups)) if isinstance(group, Mapping)]
            found.append(SavedOptimizer(path, own, num_params, is_flat=STATE not in table))
            num_groups, num_params = num_groups - len(groups), num_params - len(found[-1].params)
            if num_groups <= 0:
                break
        elif len(path) < _MAX_DEPTH:
            pairs = list(table.items()) if isinstance(table, Mapping) else enumerate(table)
            below = (((*path, key), one) for key, one in pairs if is_number_or_name(key) and as_container(one))
            waiting.extend(islice(below, max(_MAX_LOOKED_INTO - len(waiting), 0)))
    by_path = {one.path: one for one in found}
    made = list(entries)
    for i, keys in enumerate(paths() if found else ()):
        for num in range(min(len(keys), _MAX_DEPTH + 1)):
            if keys[:num] in by_path:
                made[i] = by_path[keys[:num]].put(keys[num:], made[i])
    return found, made


def is_number_or_name(key: Any) -> bool:
    """Return whether a key is a plain number or text: of another class, a metaclass may compute equality."""
    return type(key) is int or type(key) is str


def is_saved_optimizer(obj: Any) -> bool:
    """Return whether `obj` is the state dict of an optimizer, which has no tensor before the first step."""
    return type(obj) is dict and _groups_of(obj, lambda value: value) is not None


def _groups_of(table: Any, as_container: AsContainer) -> Sequence[Any] | None:
    """Return the groups of parameters of what is the state dict of an optimizer; None for another thing."""
    if not isinstance(table, Mapping):
        return None
    if not isinstance(as_container(table.get(STATE)), Mapping):
        return _flat_groups(table) if STATE not in table and GROUPS not in table else None
    groups = as_container(table.get(GROUPS))
    if isinstance(groups, Mapping) and groups and all(type(key) is int for key in groups):
        # A list of which the places were kept.
        return list(groups.values())
    return groups if isinstance(groups, (list, tuple)) else None


def _flat_groups(table: Mapping[Any, Any]) -> Sequence[Any] | None:
    """Return one group of all parameters of which joined keys give a learning rate: ``param_groups.fc.weight.lr``."""
    begins, ends = f"{GROUPS}.", ".lr"
    options = {key: value for key, value in table.items() if type(key) is str and key.startswith(begins)}
    names = [key[len(begins) : -len(ends)] for key in options if key.endswith(ends)]
    has_states = bool(names) and any(type(key) is str and key.startswith(f"{STATE}.") for key in table)
    # A part of a model that is called so has tensors alone.
    return [{PARAMS: names}] if has_states and any(map(is_plain_value, options.values())) else None


def with_names(
    entries: list[WeightEntry], optimizers: Iterable[SavedOptimizer], parameters: Sequence[WeightEntry] | None
) -> tuple[list[WeightEntry], list[str]]:
    """Return the weights, of which each state says to which parameter it belongs, where that is known, and why not.

    `parameters` are those of the model, in its order; None where there is none.
    """
    told = [one.named(parameters) for one in optimizers]
    names = {state: found for states, _ in told for state, found in states.items()}
    made = [_named(one, *names[one.name]) if one.name in names else one for one in entries] if names else entries
    return made, [why for _, why in told]


def _named(state: WeightEntry, parameter: str, called: str) -> WeightEntry:
    return noted(state._with_(_saved_as=(called, *(state._saved_as or ()))), f"of {shown_name(parameter)}")

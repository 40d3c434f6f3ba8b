"""List the weights of nested dictionaries and lists; a name joins keys with dots.

Tensors are in them, and modules, optimizers and storages, of which all is listed that is live.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_module
from tensornp.core.tensor.containers import LEAVES, is_container, leaves
from tensornp.core.tensor.form import is_storage
from tensornp.core.tensor.paths import Path, is_plain_value
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.repeated import NotListed
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.formats.contents import Beside, Contents, problem_of_part
from tensornp.models.live.module import MAX_REPEATED, contents_of_module
from tensornp.models.live.optimizer import contents_of_optimizer, modules_in, names_in
from tensornp.models.live.steps import (
    MAX_LEAVES,
    Unlisted,
    bracket_of,
    is_walked,
    is_writable,
    joined,
    key_of,
    parts_of,
    plain_of,
    steps_below,
    weights_of_leaf,
)
from tensornp.models.names.quoted import unique_names
from tensornp.models.optimizers import is_number_or_name, optimizers_in

_NUMBERS = frozenset(map(id, (int, float, bool, str, type(None))))
MAX_SAID = 100_000
"""Items that are no tensors, such as the number of the step, that are kept."""
_INDEX = re.compile(r"\[(\d{1,9})\]")


class _Leaf(NamedTuple):
    """A value in a container with its name, its keys and the end of its expression."""

    what: Any
    name: str
    keys: list[Any]
    bracket: str

    @classmethod
    def at(cls, path: Path, what: Any) -> _Leaf:
        """Return the leaf at a path."""
        keys = steps_below(path)
        return cls(what, ".".join(map(key_of, keys)), keys, "".join(map(bracket_of, keys)))

    def code(self, expression: str, parts: Mapping[str, str]) -> str:
        """Return its expression, from the expression of its part if `parts` has one."""
        first = bracket_of(self.keys[0]) if parts and self.keys else ""
        return parts[first] + self.bracket[len(first) :] if first in parts else expression + self.bracket


@outside_modes
def contents_of_tree(
    tree: Any, expression: str, model: torch.nn.Module | None, namespace: Mapping[str, Any]
) -> Contents:
    """Return the weights of a dictionary, and its other values by name.

    Nothing of the user's runs. States of optimizers are named by `model`, or by a module that is in there, or by the
    namespace. What may hold more, and of which nothing is listed, is named among the problems.
    """
    found, problems = _found(tree, expression)
    modules = [(one.name, one.what) for one in found if is_module(one.what)]
    holders, unlisted = Holders(modules, model, namespace), Unlisted()
    parts = parts_of(expression)
    listed = [(one, leaf) for leaf in found for one in _listed(leaf, leaf.code(expression, parts), holders, unlisted)]
    names = unique_names([one.name if type(one) is WeightEntry else leaf.name for one, leaf in listed])
    entries: list[WeightEntry] = []
    keys: list[list[Any]] = []
    besides: dict[str, Any] = {}
    for (one, leaf), name in zip(listed, names, strict=True):
        if type(one) is WeightEntry:
            entries.append(one if one.name == name else one._with_(name=name))
            # Each state of a live optimizer has its own names.
            keys.append(leaf.keys if _is_usual(leaf.what) or not is_holder(leaf.what) else [])
        elif len(besides) < MAX_SAID:
            besides[name] = one
    saved, entries = optimizers_in(tree, (tuple(map(_key_alone, some)) for some in keys), entries)
    problems = [*problems, *holders.problems(), *unlisted.problems()]
    return Contents(entries, Beside(besides | holders.said), problems, saved, holders.has_module, holders.classes)


def _listed(leaf: _Leaf, code: str, holders: Holders, unlisted: Unlisted) -> Iterator[Any]:
    """Yield the weights of a value in a container, or the plain value."""
    what, name = leaf.what, leaf.name
    is_usual = _is_usual(what)
    plain = what if is_usual else plain_of(what)
    if is_plain_value(plain):
        yield plain
        return
    if not is_usual and is_holder(what):
        found = holders.entries(name, code, what)
    else:
        found = [*weights_of_leaf(what, name, code)]
        if not found:
            if not is_walked(what, len(leaf.keys)):
                unlisted.note(name, what)
            return
    unlisted.is_listed(what)
    # Explorers and weights know their expressions.
    has_code = is_writable(leaf.keys) or issubclass(type(what), (WeightsExplorer, WeightEntry))
    for one in found:
        if not is_usual and one._source.held is not None:
            unlisted.is_listed(one._source.held)
        yield one if has_code else one._with_(code="")


def _is_usual(obj: Any) -> bool:
    """Return whether an object has the class of a plain value or a tensor."""
    return id(type(obj)) in LEAVES


def has_weights(obj: Any) -> bool:
    """Return whether a container has weights among its first values."""
    every = islice(leaves(obj), MAX_LEAVES) if is_container(obj) and not is_tensor_like(obj) else ()
    return any(is_tensor_like(leaf) or is_array(leaf) or is_storage(leaf) or is_holder(leaf) for _, leaf in every)


def _found(tree: Any, expression: str) -> tuple[list[_Leaf], list[str]]:
    """Return the first leaves of a tree, and problems if more are left out."""
    found: list[_Leaf] = []
    num_besides = 0
    every = leaves(tree, (None, expression))
    for path, leaf in islice(every, MAX_LEAVES):
        # A history of millions of numbers is cut.
        num_besides += id(type(leaf)) in _NUMBERS
        if path is not None and (num_besides <= MAX_SAID or id(type(leaf)) not in _NUMBERS):
            found.append(_Leaf.at(path, leaf))
    is_cut = next(every, None) is not None
    problems = [f"it has more than {MAX_LEAVES:,} values, and the others are not listed"] if is_cut else []
    return found, [*map(NotListed, problems)]


def _key_alone(step: Any) -> Any:
    """Return the key or index of a step, None for a key with its own hash."""
    if type(step) is tuple:
        return step[0] if is_number_or_name(step[0]) else None
    found = _INDEX.fullmatch(step)
    return int(found[1]) if found else None


_HOLDERS = (torch.nn.Module, torch.optim.Optimizer, WeightsExplorer, WeightEntry)


def is_holder(obj: Any) -> bool:
    """Return whether an object has weights of its own."""
    return any([issubclass(type(obj), base) for base in _HOLDERS])


class Holders:
    """Lists the weights of holders below their names, and collects their metadata.

    Attributes
    ----------
    said : dict
        The settings of optimizers, and the metadata of explorers.
    classes : dict
        Classes of modules by name.
    has_module : bool
        Whether one was a module.
    """

    def __init__(
        self,
        modules: Sequence[tuple[str, torch.nn.Module]],
        model: torch.nn.Module | None,
        namespace: Mapping[str, Any],
    ) -> None:
        self.said: dict[str, Any] = {}
        self.classes: dict[str, str] = {}
        self.has_module = False
        self._modules, self._model, self._namespace = modules, model, namespace
        self._problems: list[str] = []
        self._seen: set[int] = set()
        self._num_repeated, self._is_cut = 0, False

    def entries(self, name: str, code: str, holder: Any) -> list[WeightEntry]:
        """Return an object's weights, named below `name`; repeated objects up to a limit."""
        if id(holder) in self._seen and self._num_repeated >= MAX_REPEATED:
            self._is_cut = True
            return []
        found = self._listed(name, code, holder)
        self._num_repeated += max(len(found), 1) if id(holder) in self._seen else 0
        self._seen.add(id(holder))
        return found

    def problems(self) -> list[str]:
        """Return the problems of all holders."""
        if not self._is_cut:
            return self._problems
        said = (
            f"weights of shared modules have more than {MAX_REPEATED:,} further names; other places of shared modules "
            "are not listed"
        )
        return [*self._problems, said]

    def _listed(self, name: str, code: str, holder: Any) -> list[WeightEntry]:
        if issubclass(type(holder), WeightEntry):
            return [holder._with_(name=name, tied_to=(), related=())]
        is_optimizer = issubclass(type(holder), torch.optim.Optimizer)
        if is_module(holder):
            found = contents_of_module(holder, code)
        elif is_optimizer:
            found = contents_of_optimizer(holder, code, self._model, self._names_of)
        else:
            own = holder.metadata, holder.problems, (), holder.is_of_module, holder.classes
            found = Contents(list(holder.values()), *own)
        self.has_module = self.has_module or found.is_of_module
        self.said |= {joined(name, key): one for key, one in found.metadata.items()}
        self.classes |= {joined(name, key): one for key, one in found.classes.items()}
        self._problems += (problem_of_part(name, one) for one in found.problems)
        # The names of an optimizer's states in a state dict are known without the keys above.
        return [one._with_(name=joined(name, one.name)) if is_optimizer else _below(name, one) for one in found.entries]

    def _names_of(self, optimizer: Any) -> Mapping[int, str]:
        """Return the names of an optimizer's parameters by identity: in the container, else in the namespace."""
        return names_in(optimizer, self._modules) or names_in(optimizer, modules_in(self._namespace))


def _below(name: str, entry: WeightEntry) -> WeightEntry:
    is_kept = entry.kind == "state" or not entry._saved_as
    saved_as = entry._saved_as if is_kept else tuple(joined(name, one) for one in entry._saved_as or ())
    return entry._with_(name=joined(name, entry.name), tied_to=(), related=(), _saved_as=saved_as)

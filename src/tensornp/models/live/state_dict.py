"""List the weights of nested dictionaries and lists; a name joins keys with dots.

Tensors are in them, and modules, optimizers and storages, of which all is listed that is live.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel.attributes import an_instance, is_array
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import GATHERED, gathered_addresses, is_module, is_strided, storage_address
from tensornp.core.namespace.caller import name_of
from tensornp.core.tensor.containers import LEAVES, is_container, is_seen, leaves
from tensornp.core.tensor.form import is_storage
from tensornp.core.tensor.paths import is_plain_value
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import NotListed, WeightEntry, noted
from tensornp.models.entries.relations import relate
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.formats.contents import Beside, Contents, problem_of_part
from tensornp.models.live.module import MAX_REPEATED, contents_of_module, parameters_of
from tensornp.models.live.optimizer import contents_of_optimizer, modules_in, names_in
from tensornp.models.live.steps import (
    MAX_LEAVES,
    Unlisted,
    bracket_of,
    is_writable,
    joined,
    key_of,
    parts_of,
    plain_of,
    steps_below,
    weights_of_leaf,
)
from tensornp.models.names.quoted import unique_names
from tensornp.models.optimizers import is_number_or_name, optimizers_in, with_names
from tensornp.models.quantization.layouts import with_packed, with_pairs

_NUMBERS = frozenset(map(id, (int, float, bool, str, type(None))))
MAX_SAID = 100_000
"""Items that are no tensors, such as the number of the step, that are kept."""
_INDEX = re.compile(r"\[(\d{1,9})\]")
_HOLDERS = (torch.nn.Module, torch.optim.Optimizer, WeightsExplorer, WeightEntry)


class _Leaf(NamedTuple):
    """A value in a container with its name, its keys and its expression."""

    what: Any
    name: str
    keys: list[Any]
    code: str


@outside_modes
def contents_of_tree(
    tree: Any, expression: str, model: torch.nn.Module | None, namespace: Mapping[str, Any]
) -> Contents:
    """Return the weights of a dictionary, and its other values by name; no code of the user runs.

    States of optimizers are named by `model`, or by a module that is in there, or by the namespace. What may hold
    more, and of which nothing is listed, is named among the problems.
    """
    found, is_cut = _found(tree, expression)
    walk = _Walk([(one.name, one.what) for one in found if is_module(one.what)], model, namespace)
    listed = [(one, leaf) for leaf in found for one in walk.listed(leaf)]
    names = unique_names([one.name if type(one) is WeightEntry else leaf.name for one, leaf in listed])
    entries: list[WeightEntry] = []
    keys: list[tuple[Any, ...]] = []
    besides: dict[str, Any] = {}
    for (one, leaf), name in zip(listed, names, strict=True):
        if type(one) is WeightEntry:
            entries.append(one if one.name == name else one._with_(name=name))
            # Each state of a live optimizer has its own names.
            keys.append(tuple(map(_key_alone, leaf.keys)) if not is_holder(leaf.what) else ())
        elif len(besides) < MAX_SAID:
            besides[name] = one
    saved, entries = optimizers_in(tree, keys, entries)
    problems = [*walk.problems, *walk.unlisted.problems()]
    if is_cut:
        problems.append(NotListed(f"it has more than {MAX_LEAVES:,} values, and the others are not listed"))
    return Contents(entries, Beside(besides | walk.said), problems, saved, walk.has_module, walk.classes)


def _found(tree: Any, expression: str) -> tuple[list[_Leaf], bool]:
    """Return the first leaves of a tree, and whether more are left out."""
    found: list[_Leaf] = []
    parts, num_besides = parts_of(expression), 0
    every = leaves(tree, (None, expression))
    for path, leaf in islice(every, MAX_LEAVES):
        # A history of millions of numbers is cut.
        is_number = id(type(leaf)) in _NUMBERS
        num_besides += is_number
        if path is not None and not (is_number and num_besides > MAX_SAID):
            keys = steps_below(path)
            first, *rest = [*map(bracket_of, keys), ""]
            code = (parts[first] if first in parts else expression + first) + "".join(rest)
            found.append(_Leaf(leaf, ".".join(map(key_of, keys)), keys, code))
    return found, next(every, None) is not None


def has_weights(obj: Any) -> bool:
    """Return whether a container has weights among its first values."""
    every = islice(leaves(obj), MAX_LEAVES) if is_container(obj) and not is_tensor_like(obj) else ()
    return any(is_tensor_like(leaf) or is_array(leaf) or is_storage(leaf) or is_holder(leaf) for _, leaf in every)


def _key_alone(step: Any) -> Any:
    """Return the key or index of a step, None for a key with its own hash."""
    if type(step) is tuple:
        return step[0] if is_number_or_name(step[0]) else None
    found = _INDEX.fullmatch(step)
    return int(found[1]) if found else None


def is_holder(obj: Any) -> bool:
    """Return whether an object has weights of its own."""
    return id(type(obj)) not in LEAVES and any([issubclass(type(obj), base) for base in _HOLDERS])


class _Walk:
    """Lists the weights of values in a container, and collects what holders say.

    `said` are the settings of optimizers and the metadata of explorers, and `classes` those of modules by name.
    """

    def __init__(
        self, modules: list[tuple[str, Any]], model: torch.nn.Module | None, namespace: Mapping[str, Any]
    ) -> None:
        self.said: dict[str, Any] = {}
        self.classes: dict[str, str] = {}
        self.problems: list[str] = []
        self.unlisted, self.has_module = Unlisted(), False
        self._modules, self._model, self._namespace = modules, model, namespace
        self._seen: set[int] = set()
        self._num_repeated = 0

    def listed(self, leaf: _Leaf) -> Iterator[Any]:
        """Yield the weights of a value, or the plain value."""
        what, name = leaf.what, leaf.name
        is_usual = id(type(what)) in LEAVES
        plain = what if is_usual else plain_of(what)
        if is_plain_value(plain):
            yield plain
            return
        found = self._held(what, name, leaf.code) if is_holder(what) else [*weights_of_leaf(what, name, leaf.code)]
        if not found and not is_holder(what):
            self.unlisted.note(name, what, len(leaf.keys))
            return
        self.unlisted.is_listed(what)
        # Explorers and weights know their expressions.
        has_code = is_writable(leaf.keys) or issubclass(type(what), (WeightsExplorer, WeightEntry))
        for one in found:
            if not is_usual and one._source.held is not None:
                self.unlisted.is_listed(one._source.held)
            yield one if has_code else one._with_(code="")

    def _held(self, holder: Any, name: str, code: str) -> list[WeightEntry]:
        """Return the weights of a holder below its name; repeated holders up to a limit."""
        is_again = id(holder) in self._seen
        if is_again and self._num_repeated >= MAX_REPEATED:
            said = f"weights of shared modules have more than {MAX_REPEATED:,} further names, and others are not listed"
            self.problems += [said] if said not in self.problems else []
            return []
        self._seen.add(id(holder))
        if issubclass(type(holder), WeightEntry):
            return [holder._with_(name=name, tied_to=(), related=())]
        is_optimizer = issubclass(type(holder), torch.optim.Optimizer)
        if is_module(holder):
            found = contents_of_module(holder, code)
        elif is_optimizer:
            # Named by a module in the container, else in the namespace.
            modules = self._modules, modules_in(self._namespace)
            found = contents_of_optimizer(
                holder, code, self._model, lambda one: next(filter(None, (names_in(one, some) for some in modules)), {})
            )
        else:
            own = holder.metadata, holder.problems, (), holder.is_of_module, holder.classes
            found = Contents(list(holder.values()), *own)
        self.has_module = self.has_module or found.is_of_module
        self.said |= {joined(name, key): one for key, one in found.metadata.items()}
        self.classes |= {joined(name, key): one for key, one in found.classes.items()}
        self.problems += (problem_of_part(name, one) for one in found.problems)
        self._num_repeated += max(len(found.entries), 1) if is_again else 0
        if is_optimizer:
            # The names of an optimizer's states in a state dict are known without the keys above.
            return [one._with_(name=joined(name, one.name)) for one in found.entries]
        return [_below(name, one) for one in found.entries]


def _below(name: str, entry: WeightEntry) -> WeightEntry:
    is_kept = entry.kind == "state" or not entry._saved_as
    saved_as = entry._saved_as if is_kept else tuple(joined(name, one) for one in entry._saved_as or ())
    return entry._with_(name=joined(name, entry.name), tied_to=(), related=(), _saved_as=saved_as)


def explorer_of(
    obj: Any, expression: str, model: torch.nn.Module | None, namespace: Mapping[str, Any]
) -> WeightsExplorer:
    """Return the explorer of an object in memory, which has a name or an expression."""
    root = expression or name_of(obj, namespace)
    if issubclass(type(obj), torch.nn.Module):
        found = contents_of_module(obj, root or "model")
        return _explorer(obj, expression, found, _related(found.entries))
    if issubclass(type(obj), torch.optim.Optimizer):
        own = root or "optimizer", model, lambda one: names_in(one, modules_in(namespace))
        found = contents_of_optimizer(obj, *own)
        return _explorer(obj, expression, found, found.entries)
    if is_container(obj) and not is_tensor_like(obj):
        found = contents_of_tree(obj, root or "state_dict", model, namespace)
        if not found.entries and not found.optimizers:
            raise BadRequestError("; ".join((why_nothing(obj), *found.problems)))
        entries, why = with_names(found.entries, found.optimizers, parameters_of(model))
        problems = [f"the states are not named by this model, {one}" for one in why if one]
        return _explorer(obj, expression, found, _related(entries), problems)
    raise BadRequestError(
        "weights takes a module, an optimizer, a dictionary or list of tensors, or a path, "
        f"not {an_instance(obj)}{'; tnp.card and tnp.stats take one tensor' if is_tensor_like(obj) else ''}"
    )


def _explorer(
    obj: Any, expression: str, found: Contents, entries: list[WeightEntry], problems: Sequence[str] = ()
) -> WeightsExplorer:
    return WeightsExplorer(
        entries, expression or type(obj).__name__, metadata=found.metadata, problems=[*found.problems, *problems],
        is_of_module=found.is_of_module, classes=found.classes,
    )  # fmt: skip


@outside_modes
def _related(entries: list[WeightEntry]) -> list[WeightEntry]:
    """Note ties, packed codes, pairs of adapters, and weights that FSDP2 has gathered."""
    if addresses := gathered_addresses():
        are_there = [is_strided(one.tensor) and storage_address(one.tensor) in addresses for one in entries]
        pairs = zip(entries, are_there, strict=True)
        entries = [noted(one, GATHERED, first=False) if is_there else one for one, is_there in pairs]
    return with_pairs(with_packed(relate(entries)))


def why_nothing(obj: Any) -> str:
    """Return why a container has no weights; an unknown mapping may load its values."""
    name = type(obj).__name__
    if not is_seen(obj):
        return f"a {name} may load or compute what it gives, and is not asked; pass a dict of its values"
    return f"this {name} holds no tensor and no array"

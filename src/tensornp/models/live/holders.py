"""List the weights of modules, optimizers and explorers in a container."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tensornp.models.entries.entry import WeightEntry
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.formats.contents import problem_of_part
from tensornp.models.live.module import MAX_REPEATED, entries_of_module
from tensornp.models.live.optimizer import entries_of_optimizer, modules_in, names_in
from tensornp.models.live.steps import joined

_HOLDERS = (torch.nn.Module, torch.optim.Optimizer, WeightsExplorer, WeightEntry)


def is_holder(obj: Any) -> bool:
    """Return whether an object has weights of its own."""
    return any([issubclass(type(obj), base) for base in _HOLDERS])


def is_own(obj: Any) -> bool:
    """Return whether an object knows its expression, as explorers and weights do."""
    return any([issubclass(type(obj), base) for base in (WeightsExplorer, WeightEntry)])


def is_module(obj: Any) -> bool:
    """Return whether an object is a module, by its type."""
    return issubclass(type(obj), torch.nn.Module)


class Holders:
    """Lists the weights of holders below their names, and collects their metadata.

    Attributes
    ----------
    said, others : dict
        What optimizers say of their groups, and explorers besides weights, and the classes of what is not looked into.
    classes : dict
        By the name of a module, its class.
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
        self.others: dict[str, str] = {}
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
        if issubclass(type(holder), torch.optim.Optimizer):
            entries, said, problems = entries_of_optimizer(holder, code, self._model, self._names_of)
            self._problems += (problem_of_part(name, one) for one in problems)
            self._take(name, said)
            # What they are called in a state dict is told without what leads to it.
            return [one._with_(name=joined(name, one.name)) for one in entries]
        if is_module(holder):
            entries, problems, classes = entries_of_module(holder, code)
            self.has_module = True
        else:
            entries, problems, classes = list(holder.values()), holder.problems, holder.classes
            self.has_module = self.has_module or holder.is_of_module
            self._take(name, holder.metadata)
        self.classes |= {joined(name, key): one for key, one in classes.items()}
        self._problems += (problem_of_part(name, one) for one in problems)
        return [_below(name, one) for one in entries]

    def _take(self, name: str, said: Mapping[str, Any]) -> None:
        self.said |= {joined(name, key): one for key, one in said.items()}
        self.others |= {joined(name, key): cls for key, cls in getattr(said, "others", {}).items()}

    def _names_of(self, optimizer: Any) -> Mapping[int, str]:
        """Return the names of an optimizer's parameters by identity: in the container, else in the namespace."""
        return names_in(optimizer, self._modules) or names_in(optimizer, modules_in(self._namespace))


def _below(name: str, entry: WeightEntry) -> WeightEntry:
    is_kept = entry.kind == "state" or not entry._saved_as
    saved_as = entry._saved_as if is_kept else tuple(joined(name, one) for one in entry._saved_as or ())
    return entry._with_(name=joined(name, entry.name), tied_to=(), related=(), _saved_as=saved_as)

"""Parameters of modules that a model has and did not call: where none has come for them, `.grad` tells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.passes.recording.gradients import AwaitedGradients, place_of
from tensornp.passes.recording.remembered import Module


class NotCalled:
    """Which of them have got a gradient all the same, as of a program that computes with them itself."""

    def __init__(self) -> None:
        self.reached: dict[tuple[int, str], tuple[Module, str]] = {}
        self._unguarded, self._has_looked = Unguarded(), False

    def look(self, modules: Iterable[Module], gradients: AwaitedGradients) -> None:
        """Look at what they hold: before a step, after which a program lets go of gradients, and in the end."""
        unguarded = self._unguarded
        for known in modules:
            if known.num_calls and self._has_looked:
                continue
            for name, tensor in _parameters(known):
                place = place_of(known, name)
                awaited = gradients.parameters.get(place)
                if awaited is None or not (known.num_calls or awaited.seen.gradients):
                    if place not in self.reached and unguarded.grad_of(tensor) is not None:
                        self.reached[place] = known, name
                elif not self._has_looked and awaited.seen.gradients:
                    # Where those are gone that have come, nothing is known of the others.
                    self._has_looked = unguarded.grad_of(tensor) is not None

    def parameters(
        self, modules: Collection[Module], own: Iterable[torch.Tensor], gradients: AwaitedGradients
    ) -> Iterator[tuple[Module, str]]:
        """Yield those without a gradient, of models that were called; what modules that were called `own` is theirs."""
        roots = {one.root for one in modules if one.num_calls and not one.name}
        has_looked = self._has_looked and not self._unguarded.left_out
        left = [one for one in modules if not one.num_calls and one.root in roots] if has_looked else []
        seen = {id(tensor) for tensor in own} if left else set[int]()
        come = {place for place, one in gradients.parameters.items() if one.seen.gradients} if left else set()
        for known in left:
            for name, tensor in _parameters(known):
                has_one = place_of(known, name) in come or place_of(known, name) in self.reached
                if tensor.requires_grad and id(tensor) not in seen and not has_one:
                    seen.add(id(tensor))
                    yield known, name


def _parameters(known: Module) -> Iterator[tuple[str, Any]]:
    module = known.reference()
    table = module.__dict__.get("_parameters", {}) if module is not None else {}
    return ((name, tensor) for name, tensor in table.items() if tensor is not None and tensor.is_leaf)

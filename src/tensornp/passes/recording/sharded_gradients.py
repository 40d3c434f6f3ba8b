"""Gradients of parameters that are sharded: no node of the graph brings them, and they are read where they are kept.

FSDP computes with a gathered copy of what it has sharded, and reduces the gradients of that into `.grad`: of the local
part, which is read before each step, and as the block ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import torch

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.tensor import kinds
from tensornp.core.tensor.kinds import form_of
from tensornp.passes.recording.seen_tensors import SeenTensors, storage_key, version_of

NOTE, UNSEEN = "of the local shard of {}, from .grad", "of a sharded parameter: none was seen in .grad"


class ShardedGradients:
    """The rows of what was read in `.grad`, by the places of the parameters; none of one that is not sharded."""

    def __init__(self, tensors: SeenTensors) -> None:
        self._tensors = tensors
        self._states: dict[Hashable, Any] = {}
        self.rows: dict[Hashable, list[int]] = {}

    def expect(self, place: Hashable, parameter: torch.Tensor) -> None:
        """Note a parameter, if it is sharded, and what its `.grad` is now: that is not of this pass."""
        if (
            type(parameter) is not torch.nn.Parameter
            and place not in self._states
            and form_of(parameter).kind is kinds.LOCAL
        ):
            grad = Unguarded().grad_of(parameter)
            self._states[place], self.rows[place] = _state_of(grad), []

    def look(self, parameters: Iterable[tuple[Hashable, torch.Tensor]], awaited: Mapping[Any, Any]) -> None:
        """Read the `.grad` of those that were noted, where it has been written since."""
        unguarded = Unguarded()
        for place, parameter in parameters if self.rows else ():
            rows, one = self.rows.get(place), awaited.get(place)
            if rows is None or one is None or one.seen.gradients or form_of(parameter).kind is not kinds.LOCAL:
                continue
            grad = unguarded.grad_of(parameter)
            state = _state_of(grad)
            if grad is None or state == self._states[place]:
                continue
            self._states[place] = state
            read = self._tensors.read(grad)
            if read is not None:
                rows.append(read[0])


def _state_of(grad: torch.Tensor | None) -> Any:
    """Return by what it is told that a gradient is another one, or has been written: its local part's."""
    local = getattr(grad, "_local_tensor", grad)
    return None if local is None else (storage_key(local), version_of(local))

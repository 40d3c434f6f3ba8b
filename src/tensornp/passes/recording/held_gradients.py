"""What the `.grad` of parameters held when the first gradient of a pass came, which is added to it.

Asked then, and not as a parameter is first seen: between the call and its backward a program may have let go of it.
"""

from __future__ import annotations

from collections.abc import Hashable

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.passes.recording.remembered import Module
from tensornp.passes.recording.seen_tensors import SeenTensors, storage_key


class HeldGradients:
    """The figures of what was held before, by the places of the parameters; none where there was nothing."""

    def __init__(self, tensors: SeenTensors) -> None:
        self._tensors, self._unguarded = tensors, Unguarded()
        self.rows: dict[Hashable, int | None] = {}

    def look(self, place: tuple[int, str], known: Module, key: int | None) -> None:
        """Note what a parameter of a module holds, if it is the one that lay on a storage, and a leaf still."""
        module = known.reference()
        parameters = module.__dict__.get("_parameters", {}) if module is not None else {}
        tensor = parameters.get(place[1].rpartition(".")[2])
        self.rows[place] = None
        if tensor is not None and tensor.is_leaf and storage_key(tensor) == key:
            # Of two backwards at once, torch guards neither's: it is left out then.
            held = self._unguarded.grad_of(tensor)
            read = None if held is None else self._tensors.read(held)
            self.rows[place] = read[0] if read is not None else None

"""What the `.grad` of parameters held when the first gradient of a pass came, which is added to it.

Asked then, and not as a parameter is first seen: between the call and its backward a program may have let go of it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.passes.seen_tensors import SeenTensors


class HeldGradients:
    """The figures of what was held before, by the places of the parameters; none where there was nothing."""

    def __init__(self, tensors: SeenTensors) -> None:
        self._tensors, self._unguarded = tensors, Unguarded()
        self.rows: dict[Hashable, int | None] = {}

    def look(self, place: Hashable, node: Any) -> None:
        """Note what the parameter of a node holds that is about to accumulate the first gradient of a pass."""
        # What was computed, as a view of FSDP's flat parameter, has a node of another kind, and no `.grad`. Of two
        # backwards at once, torch guards neither's: it is left out then.
        variable = getattr(node, "variable", None)
        held = self._unguarded.grad_of(variable) if variable is not None else None
        self.rows[place] = None if held is None else self._tensors.read(held)

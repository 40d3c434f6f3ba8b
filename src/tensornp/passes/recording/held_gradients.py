"""What the `.grad` of parameters held when the first gradient of a pass came, or of a step, which is added to it.

Asked then, and not as a parameter is first seen: between the call and its backward a program may have let go of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.passes.recording.gradients import AwaitedParameter
from tensornp.passes.recording.seen_tensors import SeenTensors, storage_key

_Place = tuple[int, str]
_MOST_LOOKS = 8


class Held(NamedTuple):
    """The row of what a `.grad` held, None where it was none, and how many steps had taken it by then."""

    row: int | None
    num_steps: int


class HeldGradients:
    """What was held before a gradient was added, by the places of the parameters: at most some looks of each."""

    def __init__(self, tensors: SeenTensors) -> None:
        self._tensors, self._unguarded = tensors, Unguarded()
        self.looks: dict[_Place, list[Held]] = {}
        self.num_steps = 0

    def is_asked_for(self, place: _Place) -> bool:
        """Return whether a look tells more: the first of all, more until one has found nothing, and after a step."""
        looks = self.looks.get(place)
        return not looks or (len(looks) < _MOST_LOOKS and looks[-1] != (None, self.num_steps))

    def look(self, one: AwaitedParameter) -> None:
        """Note what a parameter of a module holds, if it is the one that was awaited, and a leaf still."""
        tensor, row = one.module.parameter(one.name), None
        if tensor is not None and tensor.is_leaf and storage_key(tensor) == one.key:
            # Of two backwards at once, torch guards neither's: it is left out then.
            held = self._unguarded.grad_of(tensor)
            read = None if held is None else self._tensors.read(held)
            row = read[0] if read is not None else None
        self.looks.setdefault(one.place, []).append(Held(row, self.num_steps))


def held_before(looks: Sequence[Held], steps: Sequence[int], zeros: frozenset[int | None]) -> int | None:
    """Return the row of what a parameter held before the pass, if that was not let go of before its first step."""
    first = steps[0] if steps else math.inf
    is_let_go = any(look.row in zeros and look.num_steps <= first for look in looks[1:])
    return None if is_let_go or not looks else looks[0].row


def are_stepped_twice(looks: Sequence[Held], steps: Sequence[int], zeros: frozenset[int | None]) -> bool:
    """Return whether one step of a parameter took gradients that an earlier one had taken, in all looks between them.

    `steps` are the numbers of those that hold it, and `zeros` the rows of what is zero, None among them. Of what came
    after the last of so many looks nothing is known.
    """
    known_up_to = looks[-1].num_steps if len(looks) == _MOST_LOOKS else math.inf
    for one, other in pairwise(steps):
        if other >= known_up_to:
            return False
        between = [look.row for look in looks if one < look.num_steps <= other]
        if between and not zeros.intersection(between):
            return True
    return False

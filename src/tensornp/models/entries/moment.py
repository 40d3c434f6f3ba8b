"""Whether a weight is what it was at a moment: told by where it lies and by torch's count of writes, by no value."""

from __future__ import annotations

from typing import NamedTuple

from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.released import reached


class Moment(NamedTuple):
    """Where a weight in memory lies, and how many writes torch has counted; -1 where it counts none."""

    address: int
    num_writes: int = -1


GONE = Moment(-1)
"""That of what is there no more."""


@outside_modes
def moment_of(row: WeightEntry) -> Moment | None:
    """Return that of a weight by now, which may have been released; None of what lies in a file, or does not tell it.

    Writes of NumPy, of ``.data`` and of fused optimizers are not counted.
    """
    try:
        held = reached(row)._source.held
        if is_array(held):
            return Moment(held.ctypes.data)
        if not is_tensor(held):
            return None
        return Moment(held.data_ptr(), -1 if held.is_inference() else held._version)
    except TensornpError:
        return GONE
    except Exception:
        # Several tensors in one, or a class of the user's.
        return None


def is_other(row: WeightEntry, before: Moment | None) -> bool:
    """Return whether a weight is known to be another one, or to have been written to, since a moment."""
    return before is not None and moment_of(row) not in (before, None)

"""The units of an activation that gave 0 at every position: counted on the tensor's own device, and not waited for.

Over all calls of a module it is those that gave 0 in each: of every unit, the greatest modulus is kept until the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable

import torch

from tensornp.core.tensor.form import plain
from tensornp.passes.recording.row_table import RowTable
from tensornp.passes.recording.seen_tensors import Seen
from tensornp.passes.records import FORWARD

_ACTIVATION = re.compile(r"(?i)(?:\b|[rcgs])elu|silu|swish|mish|tanh|sigmoid|activation")
_NEVER_NEGATIVE = ("ReLU", "ReLU6")
_OF_ANY_DIMENSIONS = ("GroupNorm", "SyncBatchNorm", "LocalResponseNorm")
"""Modules that are always given a batch, whose channels are on axis 1."""
_WITHOUT_BATCH = re.compile(r"(Lazy)?(Conv(Transpose)?|InstanceNorm)[123]d")
"""Modules that are given one series or image, by one dimension less: theirs has its channels first."""
_MAX_UNITS = 4096
_IMAGES = 4
"""Dimensions of images, which have their channels on axis 1, unless a module that is not for images gave them."""


def is_activation(class_name: str) -> bool:
    """Return whether a class of modules is one by its name."""
    return bool(_ACTIVATION.search(class_name))


class Units:
    """The greatest modulus of each of some units so far, and at how many positions these were."""

    __slots__ = ("_num_positions", "_reach", "count")

    def __init__(self) -> None:
        self._reach: torch.Tensor | None = None
        self._num_positions: Counter[str] = Counter()
        self.count: tuple[int, int, int] | None = None

    def add(self, reach: torch.Tensor, phase: str, num_positions: int) -> None:
        """Take in those of one call."""
        known = self._reach
        self._reach = reach if known is None else torch.maximum(known.to(reach.device), reach)
        self._num_positions[phase] += num_positions

    def end(self, table: RowTable) -> None:
        """Have the units counted that were 0 throughout, and keep nothing else."""
        reach, self._reach = self._reach, None
        # What a checkpoint calls again was counted before.
        num_positions = self._num_positions[FORWARD] or max(self._num_positions.values(), default=0)
        if reach is not None and num_positions > 1:
            self.count = _counted(reach, num_positions, table)


class UnitsOfCalls:
    """The units of activations: in each call, and in all calls of a module behind the same one."""

    def __init__(self, table: RowTable) -> None:
        self._table = table
        self._units: dict[Hashable, Units] = {}

    def take(
        self, tensor: torch.Tensor, seen: Seen, module: Hashable, class_name: str, made_by: str, phase: str
    ) -> tuple[tuple[int, int, int] | None, Units | None]:
        """Have the units counted that are 0 throughout; return the number of that count, and how many units there are.

        And at how many positions each was, beside the same units in all calls. `module` stands for the activation and
        the one whose result it got, `class_name` is the class of the first, `made_by` that of the other, empty where
        none is known. It costs one read, or two where numbers may be negative. None of what is no floating tensor whose
        figures were read, or has too many units; of one position, no count is made.
        """
        try:
            found = _reach_of(tensor, seen, class_name, made_by)
            if found is None:
                return None, None
            reach, num_positions = found
            units = self._units.setdefault((module, len(reach)), Units())
            units.add(reach, phase, num_positions)
            return (_counted(reach, num_positions, self._table) if num_positions > 1 else None), units
        except Exception:
            # Not every dtype and class has a greatest element.
            return None, None

    def end(self) -> None:
        """Count over all calls, before the table is read; it is asked `outside_modes`."""
        for units in self._units.values():
            units.end(self._table)
        self._units.clear()


def _counted(reach: torch.Tensor, num_positions: int, table: RowTable) -> tuple[int, int, int]:
    count = torch.sum(reach == 0, (), dtype=torch.float32)
    return table.add(count, has_sums=False), len(reach), num_positions


def _reach_of(tensor: torch.Tensor, seen: Seen, class_name: str, made_by: str) -> tuple[torch.Tensor, int] | None:
    """Return the greatest modulus of each unit, and at how many positions each was."""
    shape = seen.shape
    if seen.row is None or seen.note or len(shape) < 2 or not tensor.is_floating_point():
        return None
    # Of two dimensions, batch norm alone is given a batch, and no series.
    is_of_series = len(shape) > 2 or "BatchNorm1d" not in made_by
    spatial = next((n for n in (1, 2, 3) if f"{n}d" in made_by), 0) if is_of_series else 0
    if made_by in _OF_ANY_DIMENSIONS:
        spatial = len(shape) - 2
    num_before = len(shape) - 1 - spatial if spatial else 1
    if num_before != 1 and not (num_before == 0 and _WITHOUT_BATCH.fullmatch(made_by)):
        # Of another module without a batch, nobody says which axis the units are.
        return None
    if len(shape) > _IMAGES and not made_by:
        return None
    axis = num_before if spatial or (len(shape) == _IMAGES and not made_by) else len(shape) - 1
    num_units, dims = shape[axis], tuple(i for i in range(len(shape)) if i != axis)
    if num_units > _MAX_UNITS:
        return None
    inner = tensor if type(tensor) is torch.Tensor else plain(tensor)
    extreme = inner.amax(dims)
    if class_name not in _NEVER_NEGATIVE:
        extreme = torch.maximum(extreme, inner.amin(dims).neg())
    return extreme, tensor.numel() // num_units

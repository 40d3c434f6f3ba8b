"""The units of an activation that gave 0 at every position: counted on the tensor's own device, and not waited for."""

from __future__ import annotations

import re

import torch

from tensornp.core.tensor.form import plain
from tensornp.core.values.stats.row_table import RowTable
from tensornp.passes.recording.seen_tensors import Seen

_ACTIVATION = re.compile(r"(?i)[ercgs]elu|silu|swish|mish|tanh|sigmoid|activation")
_NEVER_NEGATIVE = ("ReLU", "ReLU6")
_MAX_UNITS = 4096
_IMAGES = 4
"""Dimensions of images, which have their channels on axis 1, unless a module that is not for images gave them."""


def is_activation(class_name: str) -> bool:
    """Return whether a class of modules is one by its name."""
    return bool(_ACTIVATION.search(class_name))


def zero_units(
    tensor: torch.Tensor, seen: Seen, class_name: str, made_by: str, table: RowTable
) -> tuple[int, int, int] | None:
    """Have the units counted that are 0 throughout; return the number of that count, and how many units there are.

    And at how many positions each was. `class_name` is that of the activation, `made_by` that of the module whose
    result it got, empty where none is known. It costs one read, or two where numbers may be negative. None of what is
    no floating tensor whose figures were read, or has one position, or too many units.
    """
    try:
        return _counted(tensor, seen, class_name, made_by, table)
    except Exception:
        # Not every dtype and class has a greatest element.
        return None


def _counted(
    tensor: torch.Tensor, seen: Seen, class_name: str, made_by: str, table: RowTable
) -> tuple[int, int, int] | None:
    shape = seen.shape
    if seen.row is None or seen.note or len(shape) < 2 or not tensor.is_floating_point():
        return None
    # Of two dimensions, batch norm alone is given a batch, and no series.
    is_of_series = len(shape) > 2 or "BatchNorm1d" not in made_by
    spatial = next((n for n in (1, 2, 3) if f"{n}d" in made_by), 0) if is_of_series else 0
    if spatial not in (0, len(shape) - 2) or (len(shape) > _IMAGES and not made_by):
        # Of what has no batch, nobody says which axis the units are.
        return None
    axis = 1 if spatial or (len(shape) == _IMAGES and not made_by) else len(shape) - 1
    num_units, dims = shape[axis], tuple(i for i in range(len(shape)) if i != axis)
    num_positions = tensor.numel() // num_units
    if num_units > _MAX_UNITS or num_positions < 2:
        return None
    inner = tensor if type(tensor) is torch.Tensor else plain(tensor)
    extreme = inner.amax(dims)
    if class_name not in _NEVER_NEGATIVE:
        extreme = torch.maximum(extreme, inner.amin(dims).neg())
    count = torch.sum(extreme == 0, (), dtype=torch.float32)
    return table.add(count, has_sums=False), num_units, num_positions

"""Measure how far the change of a matrix has a low rank."""

from __future__ import annotations

import numpy as np
import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.quoted import shown_name

_MORE = 4
"""Directions that the randomized SVD takes beyond twice the number asked for."""
_FLOATS = ("float32", "float64", "complex64", "complex128")


@outside_modes
def directions_of(first: WeightEntry, second: WeightEntry, num_directions: int = 8) -> float:
    """Return the part of a matrix's finite change in `num_directions` directions, 0 to 1."""
    if type(num_directions) is not int or num_directions < 1:
        raise BadRequestError(f"num_directions must be a number from 1 on, got {quoted(num_directions)}")
    if first.shape is None or len(first.shape) != 2 or first.shape != second.shape:
        raise BadRequestError(f"{shown_name(first.name)} is no matrix of one shape in both, and has no directions")
    # A view would end the resizability of the storage.
    before, after = (one.to_numpy(copy=True) for one in (first, second))
    before, after = (one if one.dtype.name in _FLOATS else one.astype(np.float64) for one in (before, after))
    with np.errstate(all="ignore"):
        difference = np.subtract(after, before)
    difference[~np.isfinite(difference)] = 0
    largest = np.abs(difference).max(initial=0.0)
    if not largest:
        raise BadRequestError(f"{shown_name(first.name)} has no finite change, and that has no directions")
    matrix = torch.from_numpy(difference / largest)
    wanted = min(num_directions, *matrix.shape)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        _, sizes, _ = torch.svd_lowrank(matrix, min(2 * wanted + _MORE, *matrix.shape))
    total = float(matrix.abs().square_().sum(dtype=torch.float64))
    return min(float(sizes[:wanted].double().square().sum()) / total, 1.0)

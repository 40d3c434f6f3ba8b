"""Find changes of low rank, such as those of a merged adapter."""

from __future__ import annotations

import numpy as np
import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.quoted import shown_name

_NUM_POWERS, _MORE = 2, 4
_FLOATS = ("float32", "float64", "complex64", "complex128")


@outside_modes
def directions_of(first: WeightEntry, second: WeightEntry, num_directions: int = 8) -> float:
    """Return the part of a matrix's change in `num_directions` directions, 0 to 1.

    The method is a randomized SVD (Halko, Martinsson, Tropp 2011) of the finite elements.
    """
    if type(num_directions) is not int or num_directions < 1:
        raise BadRequestError(f"num_directions is a number from 1 on, not {quoted(num_directions)}")
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
    return _share(torch.from_numpy(difference / largest), num_directions)


def _share(matrix: torch.Tensor, num_directions: int) -> float:
    wanted = min(num_directions, *matrix.shape)
    width = min(2 * wanted + _MORE, *matrix.shape)
    # A generator of its own, so that no other random state moves.
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(matrix.shape[1], width, generator=generator, dtype=torch.float64).to(matrix.dtype)
    basis, _ = torch.linalg.qr(matrix @ probe)
    for _ in range(_NUM_POWERS):
        basis, _ = torch.linalg.qr(matrix @ (matrix.mH @ basis))
    sizes = torch.linalg.svdvals(basis.mH @ matrix)
    total = float(matrix.abs().square_().sum(dtype=torch.float64).item())
    return min(float(sizes[:wanted].double().square().sum().item()) / total, 1.0)

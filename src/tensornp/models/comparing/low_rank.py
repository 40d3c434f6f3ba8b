"""In how few directions the change of a matrix lies: an adapter of low rank that was merged is seen by that."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.modes import outside_modes

_NUM_POWERS, _MORE = 2, 4
_FLOATS = ("float32", "float64", "complex64", "complex128")


@outside_modes
def share_of_change(first: Any, second: Any, num_directions: int) -> float | None:
    """Return the share of ``second - first`` that lies in its first directions; None where nothing finite has changed.

    By randomized SVD (Halko, Martinsson, Tropp 2011), of what is finite.
    """
    with np.errstate(all="ignore"):
        difference = np.subtract(_floats(second), _floats(first))
    difference[~np.isfinite(difference)] = 0
    largest = np.abs(difference).max(initial=0.0)
    if not largest:
        return None
    difference /= largest
    return _share(torch.from_numpy(difference), num_directions)


def _floats(array: Any) -> Any:
    """Return numbers as floats, as they are or as short as holds them."""
    return array if array.dtype.name in _FLOATS else array.astype(np.float64)


def _share(matrix: torch.Tensor, num_directions: int) -> float:
    wanted = min(num_directions, *matrix.shape)
    width = min(2 * wanted + _MORE, *matrix.shape)
    # A generator of its own: the state of nobody else's moves, on no device.
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(matrix.shape[1], width, generator=generator, dtype=torch.float64).to(matrix.dtype)
    basis, _ = torch.linalg.qr(matrix @ probe)
    for _ in range(_NUM_POWERS):
        basis, _ = torch.linalg.qr(matrix @ (matrix.mH @ basis))
    sizes = torch.linalg.svdvals(basis.mH @ matrix)
    total = float(matrix.abs().square_().sum(dtype=torch.float64).item())
    return min(float(sizes[:wanted].double().square().sum().item()) / total, 1.0)

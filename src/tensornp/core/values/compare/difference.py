"""Compute the difference of two tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.values.compare.numbers import differing, shown_alike
from tensornp.core.values.shown.preview import gathered
from tensornp.core.values.shown.window_values import Subject
from tensornp.core.values.stored import Box, StoredValues, flat_from_boxes
from tensornp.errors import NoDataError


def difference_of(first: Subject, second: Subject) -> StoredValues:
    """Return ``second - first`` in float64 or complex128, read on request; equal elements give 0."""
    if first.shape != second.shape:
        raise NoDataError(f"shapes differ: {first.shape} and {second.shape}; open each of them with %weights")
    is_complex = any(one.info.dtype.is_complex for one in (first, second))
    dtype = np.complex128 if is_complex else np.float64

    @outside_modes
    @np.errstate(all="ignore")
    def read(box: Box) -> Any:
        places = [list(range(part.start, part.stop)) for part in box]
        a, b = shown_alike(*(gathered(one.tensor, one.info, one.plan, places) for one in (first, second)))
        # The difference of two integers of 64 bits needs more.
        wide = np.longdouble if all(one.dtype.kind in "iu" for one in (a, b)) else dtype
        a, b = a.astype(wide), b.astype(wide)
        return np.where(differing(a, b), b - a, 0).astype(dtype)

    return StoredValues(
        first.shape,
        np.dtype(dtype).name,
        lambda box: torch.from_numpy(read(box)),
        flat_from_boxes(first.shape, read),
        where="difference",
    )

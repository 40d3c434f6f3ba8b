"""Make arrays and tensors of bits from files; listing does not import this."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.models.reading.take import Array

if TYPE_CHECKING:
    pass


def tensor_of(bits: Array, name: str) -> torch.Tensor:
    """Return a tensor of dtype `name` over native elements, which share memory."""
    flat = np.ascontiguousarray(bits).reshape(-1).view(np.uint8)
    return torch.from_numpy(flat).view(getattr(torch, name)).reshape(bits.shape)


@outside_modes
def array_of(whole: Array, name: str, *, writeable: bool, dtype: object) -> Array:
    """Return native elements of dtype `name` as an array over their own memory."""
    if not whole.ndim and KNOWN[name].values_per_element > 1:
        # One element is several values.
        whole = whole.reshape(1)
    if dtype is None and whole.dtype.name == name:
        whole.flags.writeable = writeable
        return whole
    made: Array = to_numpy(tensor_of(whole, name), writeable=writeable, dtype=dtype)
    return made

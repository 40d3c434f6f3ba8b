"""Whether a tensor and an array see the same bytes, measured by address and never deduced."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensornp.core.info import inspect


def sees_same_elements(tensor: torch.Tensor, array: np.ndarray[Any, Any]) -> bool:
    """Return whether element for element `array` lies where `tensor` does: same address, same strides in bytes.

    False where that is not known: lazy conjugates and negatives, empty tensors, other devices. Reads metadata only.
    """
    info = inspect(tensor)
    if info.storage is None or info.stride is None or info.device.type != "cpu" or not info.numel:
        return False
    if info.is_conj or info.is_neg or info.itemsize != array.itemsize or info.shape != array.shape:
        return False
    strides = tuple(step * info.itemsize for step in info.stride)
    steps = zip(strides, array.strides, info.shape, strict=True)
    address = array.__array_interface__["data"][0]
    return address == info.storage.address and all(a == b for a, b, size in steps if size > 1)

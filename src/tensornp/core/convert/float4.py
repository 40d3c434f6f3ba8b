"""float4_e2m1fn_x2: two 4-bit floats in each byte, which torch keeps and moves but does not compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tensornp.core.tensor.dtypes import FLOAT4_VALUES


def unpack(packed: torch.Tensor) -> torch.Tensor:
    """Return the float32 values, the low nibble of each byte first: of shape ``(*, 2 * n)`` for ``(*, n)``."""
    codes = packed.view(torch.uint8)
    return decode(torch.stack((codes & 15, codes >> 4), -1).reshape(*codes.shape[:-1], -1))


def decode(codes: torch.Tensor) -> torch.Tensor:
    """Return the float32 value of each 4-bit code."""
    values = torch.tensor(FLOAT4_VALUES, dtype=torch.float32, device=codes.device)
    return values[codes.to(torch.int64)]


def pack(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """Return the packed tensor of an ml_dtypes array of one value a byte, whose last dimension is even."""
    codes = torch.from_numpy(array.view(np.uint8) & np.uint8(15))
    return (codes[..., 0::2] | codes[..., 1::2] << 4).view(torch.float4_e2m1fn_x2)

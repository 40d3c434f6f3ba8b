"""What differs between two quantized tensors that store the same numbers: by what these are scaled."""

from __future__ import annotations

from typing import Any

import torch

from tensornp.core.lowlevel.ordinary import is_of_torch

_MAX_NUMEL = 2**26
"""Elements of which the stored numbers are compared: torch gives these in a copy."""
_PER_TENSOR = (torch.per_tensor_affine, torch.per_tensor_symmetric)


def other_scheme(a: Any, b: Any) -> str:
    """Return "same stored values, other scale" or the like; empty where that is not so, or not known.

    Both are to differ once they are dequantized.
    """
    # Of a class of the user's, nobody knows what it answers.
    if not all(is_of_torch(one) and one.is_quantized for one in (a, b)):
        return ""
    if a.numel() > _MAX_NUMEL or a.qscheme() != b.qscheme() or not torch.equal(a.int_repr(), b.int_repr()):
        return ""
    names, pairs = ("scale", "zero point"), zip(scheme_of(a), scheme_of(b), strict=True)
    others = [name for name, (one, other) in zip(names, pairs, strict=True) if not torch.equal(one, other)]
    return f"same stored values, other {' and '.join(others)}" if others else ""


def scheme_of(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scales of a quantized tensor and its zero points: one of each, or one of each channel."""
    if tensor.qscheme() in _PER_TENSOR:
        return torch.tensor(tensor.q_scale(), dtype=torch.float64), torch.tensor(tensor.q_zero_point())
    return tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()

"""Which tensors are ordinary: of torch's own two classes, and so what they say is true, and costs next to nothing."""

from __future__ import annotations

from typing import Any, TypeGuard

import torch


def is_of_torch(obj: Any) -> TypeGuard[torch.Tensor]:
    """Return whether an object is of one of these classes; no metaclass is asked."""
    cls = type(obj)
    return cls is torch.Tensor or cls is torch.nn.Parameter


def is_strided(obj: Any) -> TypeGuard[torch.Tensor]:
    """Return whether it is an ordinary tensor with strides, of one size in each dimension."""
    return is_of_torch(obj) and obj.layout is torch.strided and not obj.is_nested

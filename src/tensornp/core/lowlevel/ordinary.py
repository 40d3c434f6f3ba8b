"""Recognize tensors of torch's own two classes."""

from __future__ import annotations

from typing import Any, TypeGuard

import torch


def is_of_torch(obj: Any) -> TypeGuard[torch.Tensor]:
    """Return whether an object is a Tensor or Parameter, and not of a subclass."""
    cls = type(obj)
    return cls is torch.Tensor or cls is torch.nn.Parameter


def is_strided(obj: Any) -> TypeGuard[torch.Tensor]:
    """Return whether an object is an ordinary strided tensor."""
    return is_of_torch(obj) and obj.layout is torch.strided and not obj.is_nested

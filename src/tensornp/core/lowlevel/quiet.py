"""Drop the warnings of torch that only a display causes.

Warning filters belong to the whole process. torch warns in the name of the innermost frame of Python; if the globals
there name no module, Python drops the warning (`warn_explicit` in ``Python/_warnings.c``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

_T = TypeVar("_T")


def quietly(call: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    """Call a C function of torch and drop its warnings."""
    return call(*args, **kwargs)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return an alias of `tensor` outside of autograd, stripped of its class; call it `outside_modes`."""
    values = torch.Tensor.detach(tensor)
    return values if type(values) is torch.Tensor else torch.Tensor.as_subclass(values, torch.Tensor)


globals()["__name__"] = None

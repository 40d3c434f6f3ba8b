"""Where values can be read and nobody notices: outside of modes, and with denormals kept."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import torch

from tensornp.core.torch_private import unnoticed

_F = TypeVar("_F", bound=Callable[..., Any])


def apart(function: _F) -> _F:
    """Return `function` as one that runs where the values of tensors can be read: `unnoticed`, with denormals kept.

    Those are kept whatever `torch.set_flush_denormal` has been told. torch has no way to ask for that setting, so a
    computation tells.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _SMALLEST * _ONE:
            return function(*args, **kwargs)
        try:
            torch.set_flush_denormal(False)
            return function(*args, **kwargs)
        finally:
            torch.set_flush_denormal(True)

    return unnoticed(cast(_F, call))


_SMALLEST, _ONE = np.float32(1e-45), np.float32(1)

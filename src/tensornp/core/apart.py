"""Where values can be read and nobody notices: outside of modes, with denormals kept, in a forked process too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import torch

from tensornp.core.forked import PROCESS
from tensornp.core.torch_private import unnoticed

_F = TypeVar("_F", bound=Callable[..., Any])


def apart(function: _F) -> _F:
    """Return `function` as one that runs where the values of tensors can be read: `unnoticed`, with denormals kept.

    Those are kept whatever `torch.set_flush_denormal` has been told. torch has no way to ask for that setting, so a
    computation tells. In a forked process it runs on one thread: those of OpenMP were not copied with the rest, and to
    wait for them takes for ever.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        num_threads = torch.get_num_threads() if PROCESS.is_forked else 1
        if _SMALLEST * _ONE and num_threads == 1:
            return function(*args, **kwargs)
        is_flushed = not _SMALLEST * _ONE
        try:
            if is_flushed:
                torch.set_flush_denormal(False)
            if num_threads > 1:
                torch.set_num_threads(1)
            return function(*args, **kwargs)
        finally:
            if is_flushed:
                torch.set_flush_denormal(True)
            if num_threads > 1:
                torch.set_num_threads(num_threads)

    return unnoticed(cast(_F, call))


_SMALLEST, _ONE = np.float32(1e-45), np.float32(1)

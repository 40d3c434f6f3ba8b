"""Where values can be read and nobody notices: outside of modes, without warnings, and with denormals kept."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from tensornp.core.torch_private import undisturbed


@contextmanager
def apart(tensor: torch.Tensor) -> Iterator[None]:
    """Stand where the values of `tensor` can be read: `undisturbed`, `quiet`, and with `denormals_kept`."""
    with undisturbed(), quiet(tensor), denormals_kept():
        yield


def quiet(tensor: torch.Tensor) -> AbstractContextManager[Any]:
    """Keep torch from telling a user who only looks that its own support for an odd kind is new, or goes away."""
    bare: Any = torch.Tensor
    is_ordinary = (
        bare.layout.__get__(tensor) == torch.strided
        and bare.dtype.__get__(tensor) != torch.complex32
        and not bare.is_quantized.__get__(tensor)
        and not bare.is_nested.__get__(tensor)
    )
    return nullcontext() if is_ordinary else QUIET


class _Quiet:
    """Ignores warnings while any thread is inside: of two threads that restored the global filters, each its own, the
    later one would leave behind what the other had set.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._caught = threading.Lock(), 0, warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._caught = warnings.catch_warnings()
                self._caught.__enter__()
                warnings.simplefilter("ignore", UserWarning)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._caught.__exit__(None, None, None)


QUIET = _Quiet()


def denormals_kept() -> AbstractContextManager[Any]:
    """Let this thread compute with denormals inside, whatever `torch.set_flush_denormal` has been told.

    torch has no way to ask for the setting, so a computation tells.
    """
    return nullcontext() if _SMALLEST * _ONE else _not_flushed()


_SMALLEST, _ONE = np.float32(1e-45), np.float32(1)


@contextmanager
def _not_flushed() -> Iterator[None]:
    torch.set_flush_denormal(False)
    try:
        yield
    finally:
        torch.set_flush_denormal(True)

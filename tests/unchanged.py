"""Promise 1 as one check: looking leaves tensors, torch and NumPy as they were, and no mode sees a call."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import _tensor_str
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class _CountFunctions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class _CountDispatches(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def _bits(t: torch.Tensor) -> bytes | None:
    if t.device.type != "cpu" or t.layout != torch.strided or not t.numel():
        return None
    storage = t.untyped_storage()
    # Through ctypes, so that the snapshot itself neither locks the storage nor goes through an operator.
    import ctypes

    return ctypes.string_at(storage.data_ptr(), min(storage.nbytes(), 1 << 20)) if storage.nbytes() else b""


def _state_of(t: torch.Tensor) -> dict[str, Any]:
    strided = t.layout == torch.strided and t.device.type == "cpu"
    return {
        "bits": _bits(t),
        "version": None if t.is_inference() else t._version,
        "grad": id(t.grad) if t.is_leaf else None,
        "grad bits": _bits(t.grad) if t.is_leaf and t.grad is not None else None,
        "hooks": dict(t._backward_hooks) if t._backward_hooks else None,
        "requires_grad": t.requires_grad,
        "resizable": t.untyped_storage().resizable() if strided else None,
        "address": t.untyped_storage().data_ptr() if strided else None,
        "lazy bits": (t.is_conj(), t.is_neg()),
    }


def _state_of_libraries() -> dict[str, Any]:
    return {
        "rng": torch.get_rng_state().tolist(),
        "numpy rng": str(np.random.get_state()),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "grad mode": torch.is_grad_enabled(),
        "numpy print options": np.get_printoptions(),
        "torch print options": vars(_tensor_str.PRINT_OPTS).copy(),
        "warning filters": list(warnings.filters),
    }


@contextmanager
def unchanged(*tensors: torch.Tensor) -> Iterator[None]:
    """Fail if the block changes one of `tensors` or a global state, warns, or makes a call that a mode can see."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        before = [_state_of(t) for t in tensors], _state_of_libraries()
        with _CountFunctions() as functions, _CountDispatches() as dispatches:
            yield
        after = [_state_of(t) for t in tensors], _state_of_libraries()
    assert after == before
    assert functions.seen == []
    assert dispatches.seen == []
    assert [str(warning.message) for warning in warned] == []

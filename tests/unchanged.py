"""Promise 1 as one check: looking leaves tensors, torch and NumPy as they were, and no mode sees a call."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Iterator
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


def _bits(t: torch.Tensor) -> bytes:
    """Return the bytes of the whole storage, past any operator, so that the snapshot itself leaves no mark."""
    storage = t.untyped_storage()
    if not storage.nbytes() or storage.device.type != "cpu":
        return b""
    return ctypes.string_at(_address(t), min(storage.nbytes(), 1 << 20))


def _address(t: torch.Tensor) -> int:
    """Return the address of the storage; asked in the usual way, a lazy copy would become a real one."""
    return torch._C._data_address(t) if torch._C._is_cow_tensor(t) else t.untyped_storage().data_ptr()


def _grad_of(t: torch.Tensor) -> tuple[int, bytes] | None:
    return (id(t.grad), _bits(t.grad)) if t.is_leaf and t.grad is not None else None


_FACTS: dict[str, Callable[[torch.Tensor], object]] = {
    "bits": lambda t: _bits(t) if t.device.type == "cpu" else None,
    "version": lambda t: t._version,
    "grad": _grad_of,
    "hooks": lambda t: dict(t._backward_hooks or {}),
    "requires_grad": lambda t: t.requires_grad,
    "resizable": lambda t: t.untyped_storage().resizable(),
    "address": _address,
    "lazily copied": torch._C._is_cow_tensor,
    "lazy bits": lambda t: (t.is_conj(), t.is_neg()),
}


def _state_of(t: torch.Tensor) -> dict[str, object]:
    """Return each fact, or the type of the error by which an odd tensor refuses it."""
    state: dict[str, object] = {}
    for name, read in _FACTS.items():
        try:
            state[name] = read(t)
        except Exception as error:
            state[name] = type(error)
    return state


def _state_of_libraries() -> dict[str, Any]:
    return {
        "rng": torch.get_rng_state().tolist(),
        "numpy rng": str(np.random.get_state()),
        "dtype": torch.get_default_dtype(),
        "device": _default_device(),
        "grad mode": torch.is_grad_enabled(),
        "numpy print options": np.get_printoptions(),
        "torch print options": vars(_tensor_str.PRINT_OPTS).copy(),
    }


def _default_device() -> torch.device | None:
    try:
        return torch.get_default_device()
    except AttributeError:
        # Before 2.7, torch cannot tell once there was one and it was taken back.
        return None


@contextmanager
def unchanged(*tensors: torch.Tensor, but: tuple[str, ...] = ()) -> Iterator[None]:
    """Fail if the block changes one of `tensors` or a global state, warns, or makes a call that a mode can see.

    `but` names facts that the block is meant to change: an array that shares memory ends a storage's resizability.
    """
    before = _snapshot(tensors, but)
    with (
        warnings.catch_warnings(record=True) as warned,
        _CountFunctions() as functions,
        _CountDispatches() as dispatches,
    ):
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        yield
        assert warnings.filters == filters
    assert _snapshot(tensors, but) == before
    assert (functions.seen, dispatches.seen) == ([], []), f"seen: {functions.seen}, {dispatches.seen}"
    # ipywidgets 8.1.0 is older than the traitlets that it asks for.
    heard = [text for warning in warned if not (text := str(warning.message)).startswith("Deprecated in traitlets")]
    assert not heard, heard


def _snapshot(tensors: tuple[torch.Tensor, ...], but: tuple[str, ...]) -> tuple[object, ...]:
    with warnings.catch_warnings():
        # Asking a fake tensor for its address warns.
        warnings.simplefilter("ignore")
        states = [{name: fact for name, fact in _state_of(t).items() if name not in but} for t in tensors]
        return states, _state_of_libraries()

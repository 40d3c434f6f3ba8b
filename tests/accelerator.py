"""A fake accelerator in pure Python that keeps a ledger: `register()` gives this process the device "card".

Its memory is NumPy's. Operators on metadata alone are torch's own; any other runs on CPU tensors over the same memory.
Registration is global and permanent, so only child processes do it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_map

try:
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
except ImportError:
    _setup_privateuseone_for_python_backend = None

needs_card = pytest.mark.skipif(
    _setup_privateuseone_for_python_backend is None, reason="a device written in Python needs torch 2.9"
)
_ON_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


@dataclass
class Ledger:
    """What the card has done since `clear`: its operators in order, and bytes allocated on it or copied to and from."""

    ops: list[str] = field(default_factory=list)
    allocated: int = 0
    to_card: int = 0
    to_host: int = 0

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]


ledger = Ledger()
_kept: list[Any] = []
"""Memory, so that no storage dangles, and libraries, whose end would end the registration."""


def register() -> Ledger:
    _setup_privateuseone_for_python_backend("card")
    aten = torch.ops.aten
    library, others = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
    _kept.extend([library, others])
    same = [aten.as_strided, aten.view, aten._reshape_alias, aten.unfold, aten.view_as_real]
    for op in (*(packet.default for packet in same), aten.set_.source_Storage_storage_offset):
        library.impl(op.name(), _metadata_only(op), "PrivateUse1")
    library.impl("empty.memory_format", _empty, "PrivateUse1")
    library.impl("empty_strided", _empty_strided, "PrivateUse1")
    library.impl("_copy_from", _copy_from, "PrivateUse1")
    for bit in ("Conjugate", "Negative"):
        # torch resolves these by a copy, which would come here again without end.
        library.impl("_copy_from", torch.library.fallthrough_kernel, bit)
    others.fallback(_run_over_the_same_memory, "PrivateUse1")
    return ledger


def memory_of(t: torch.Tensor) -> torch.Tensor:
    """Return a CPU tensor over the same memory, lazy bits and all, past the ledger."""
    storage = t.untyped_storage()
    twin = torch._C._construct_storage_from_data_pointer(storage.data_ptr(), torch.device("cpu"), storage.nbytes())
    raw = torch.empty(0, dtype=t.dtype, device="cpu").set_(twin, t.storage_offset(), t.shape, t.stride())
    raw = raw.conj() if t.is_conj() else raw
    return torch._neg_view(raw) if t.is_neg() else raw


def _metadata_only(op: torch._ops.OpOverload) -> Callable[..., Any]:
    def kernel(*args: Any) -> Any:
        ledger.ops.append(op.name())
        return op.redispatch(_ON_CPU, *args)

    return kernel


def _empty(size: Any, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    return _empty_strided(size, torch.empty(size, device="meta").stride(), dtype=dtype)


def _empty_strided(size: Any, stride: Any, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    numel = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    memory = np.zeros(numel * dtype.itemsize, np.uint8)
    _kept.append(memory)
    ledger.ops.append("aten::empty_strided")
    ledger.allocated += memory.nbytes
    new = torch._C._acc.create_empty_tensor((0,), dtype)
    storage = torch._C._construct_storage_from_data_pointer(memory.ctypes.data, new.device, memory.nbytes)
    return _set(new, storage, size, stride)


def _set(t: torch.Tensor, storage: torch.UntypedStorage, size: Any, stride: Any) -> torch.Tensor:
    return torch.ops.aten.set_.source_Storage_storage_offset.redispatch(_ON_CPU, t, storage, 0, size, stride)


def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    ledger.ops.append("aten::_copy_from")
    if not _is_on_card(target):
        ledger.to_host += source.numel() * source.itemsize
    elif not _is_on_card(source):
        ledger.to_card += source.numel() * source.itemsize
    _as_on_host(target).copy_(_as_on_host(source))
    return target


def _as_on_host(t: torch.Tensor) -> torch.Tensor:
    return memory_of(t) if _is_on_card(t) else t


def _run_over_the_same_memory(op: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    ledger.ops.append(op.name())
    lent: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def lend(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if not _is_on_card(value):
            return value
        # An empty `out` is for the operator to resize, which lent memory cannot be.
        twin = memory_of(value) if value.numel() else torch.empty(value.shape, dtype=value.dtype, device="cpu")
        lent[id(twin)] = twin, value
        return twin

    def take(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        _, original = lent.get(id(value), (None, None))
        if original is not None and original.shape == value.shape:
            return original
        new = _empty_strided(value.shape, value.stride(), dtype=value.dtype)
        memory_of(new).copy_(value)
        return new if original is None else _set(original, new.untyped_storage(), new.shape, new.stride())

    # The packet, because a number arrives here as itself where this overload had it wrapped into a tensor.
    return tree_map(take, op.overloadpacket(*tree_map(lend, args), **tree_map(lend, kwargs)))


def _is_on_card(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "card"

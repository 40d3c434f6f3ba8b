"""Find the tensors in arguments and results, and give their values as strided tensors."""

from __future__ import annotations

import types
from typing import Any

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import is_tensor, own_attributes
from tensornp.core.lowlevel.quiet import plain, quietly
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.tensor import kinds
from tensornp.core.tensor.kinds import form_of
from tensornp.core.tensor.paths import key_text
from tensornp.core.tensor.strides import num_reached

STORED = "statistics of the stored elements"
_MOST_LEAVES, _MOST_LEVELS = 1000, 5
"""Values of an argument that are looked at, and levels of containers and objects."""
_PLAIN_CLASSES = frozenset((int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size))
_CODE = (type, types.ModuleType, torch.nn.Module, torch.optim.Optimizer)


def tensors_in(tree: Any) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors in arguments or a result by path, also in attributes of objects such as a cache."""
    found: list[tuple[str, torch.Tensor]] = []
    waiting = [("", tree, 0)]
    for _ in range(_MOST_LEAVES):
        if not waiting:
            break
        path, one, level = waiting.pop()
        if is_tensor(one):
            found.append((path, one))
        elif type(one) not in _PLAIN_CLASSES and level < _MOST_LEVELS:
            waiting += [(path + step, child, level + 1) for step, child in reversed(_children_of(one))]
    return found


def _children_of(obj: Any) -> list[tuple[str, Any]]:
    """Return the first children of a container or an object, each with the step to it."""
    if isinstance(obj, dict):
        return [(f"[{key_text(key)}]", child) for key, child in list(dict.items(obj))[:_MOST_LEAVES]]
    if isinstance(obj, (list, tuple)):
        names = getattr(type(obj), "_fields", ())
        return [(f".{names[i]}" if i < len(names) else f"[{i}]", one) for i, one in enumerate(obj[:_MOST_LEAVES])]
    if callable(obj) or isinstance(obj, _CODE):
        return []
    try:
        return [(f".{name}", child) for name, child in dict(own_attributes(obj)).items()]
    except Exception:
        # Another thread changes it just now, or it is broken.
        return []


def readable_of(tensor: torch.Tensor) -> tuple[torch.Tensor | None, str]:
    """Return a strided tensor with the values of another, or None, and a note on them."""
    if is_ordinary(tensor):
        return _strided(tensor), ""
    form = form_of(tensor)
    if form.kind is kinds.LOCAL:
        return readable_of(tensor._local_tensor)[0], "statistics of the local shard"  # type: ignore[attr-defined]
    if form.state != "available":
        return None, f"{form.state}: not read"
    if form.kind is kinds.SPARSE:
        raw = plain(tensor)
        # Elements that are stored several times are summed.
        return _strided(stored_of(quietly(raw.coalesce) if raw.layout == torch.sparse_coo else raw)), STORED
    if form.kind not in (kinds.STRIDED, kinds.ZERO):
        return None, f"{form.kind.label or form.kind.name}: not read"
    return _strided(plain(tensor)), ""


def is_ordinary(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a dense one of torch's own class without lazy bits: most are."""
    if not is_of_torch(tensor) or tensor.dtype is torch.complex32 or tensor.is_meta:
        return False
    device = "cpu" if tensor.is_cpu else tensor.device.type
    if device not in _ORDINARY_KEYS:
        _ORDINARY_KEYS[device] = torch._C._dispatch_keys(torch.empty(0, device=device)).raw_repr()
    return int(torch._C._dispatch_keys(tensor).raw_repr()) == _ORDINARY_KEYS[device]


_ORDINARY_KEYS: dict[str, int] = {}
"""Dispatch keys of dense tensors without lazy bits, by type of device."""


def _strided(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return each element of a readable tensor once, in the order of its memory; None for no elements."""
    size = tensor.numel()
    if not size:
        return None
    is_row = tensor.is_contiguous()
    reach = size if is_row else num_reached(tensor.shape, tensor.stride())
    if (tensor.storage_offset() + reach) * tensor.itemsize > tensor.untyped_storage().nbytes():
        return None
    if not is_row:
        for dim, (length, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if length > 1 and step == 0:
                tensor = tensor.narrow(dim, 0, 1)
        # Torch reads a transposed matrix ten times faster in the order of its memory.
        tensor = tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))
    # Torch warns of complex32; a modulus may be beyond float16, too.
    return quietly(tensor.to, torch.complex64) if tensor.dtype is torch.complex32 else tensor


def stored_of(tensor: Any) -> torch.Tensor:
    """Return the elements that a sparse tensor stores; nested tensors are not read."""
    if tensor.is_nested or not is_of_torch(tensor):
        raise ValueError("nested, or a class of its own")
    raw = plain(tensor)
    return torch_private.stored_elements(raw)[1] if raw.layout == torch.sparse_coo else raw.values()

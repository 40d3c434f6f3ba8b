"""Ask torch by private names what it has no public name for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tensornp.core.lowlevel.private_names import find
from tensornp.core.lowlevel.quiet import quietly

_data_address = find("_C._data_address")
_is_cow_tensor = find("_C._is_cow_tensor")
_is_functorch_wrapped = find("_C._functorch.is_functorch_wrapped_tensor")
_is_functional_tensor = find("_is_functional_tensor")
_is_zerotensor = find("_is_zerotensor")
_unpack_dual = find("_VF._unpack_dual")
_nnz, _indices, _values = (find(f"Tensor.{name}") for name in ("_nnz", "_indices", "_values"))
_nested_layout = [find(f"Tensor._nested_tensor_{name}") for name in ("size", "strides", "storage_offsets")]
_quantize_per_tensor = find("_make_per_tensor_quantized_tensor")
_quantize_per_channel = find("_make_per_channel_quantized_tensor")
_storage_use_count = getattr(torch._C, "_storage_Use_Count", None)
_scripted_table = find("jit._script.OrderedDictWrapper")
PLAIN_DISPATCH = (torch.Tensor.__torch_dispatch__, find("_C._disabled_torch_dispatch_impl"))
"""The values of ``__torch_dispatch__`` of a class that leaves operators to torch."""


def is_functorch_wrapper(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` stands for a value inside (or escaped from) a torch.func transform."""
    return bool(_is_functorch_wrapped(tensor))


def is_functional_wrapper(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is wrapped by functionalization; its `numpy()` would return garbage."""
    return bool(_is_functional_tensor(tensor))


def is_zero_tensor(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is a symbolic zero of autograd, which has no memory at all."""
    return bool(_is_zerotensor(tensor))


def is_mkldnn(layout: torch.layout) -> bool:
    """Return whether `layout` is the opaque one of oneDNN, which has no public name."""
    return str(layout) == "torch._mkldnn"


def has_tangent(tensor: torch.Tensor) -> bool:
    """Return whether forward-mode differentiation carries a tangent along with `tensor`."""
    from torch.autograd import forward_ad

    level = getattr(forward_ad, "_current_level", 0)
    if level < 0:
        return False
    return _unpack_dual(tensor, level=level)[1] is not None


def num_stored(sparse: Any) -> int:
    """Return how many elements (or blocks) a sparse tensor stores, duplicates counted."""
    return int(_nnz(sparse))


def stored_elements(sparse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices and the values of a COO tensor as stored, which torch has no public way to ask for."""
    return _indices(sparse), quietly(_values, sparse)


def nested_sizes(nested: Any) -> list[torch.Tensor]:
    """Return the tensors by which a strided nested tensor tells its parts apart."""
    return [read(nested) for read in _nested_layout]


def untyped(storage: Any) -> torch.UntypedStorage:
    """Return the bytes under a typed storage; `TypedStorage.untyped` warns that it is deprecated."""
    found: torch.UntypedStorage = getattr(storage, "_untyped_storage", None) or storage.untyped()
    return found


def quantized_like(
    codes: torch.Tensor, scheme: torch.Tensor, take: Callable[[torch.Tensor, int], torch.Tensor]
) -> torch.Tensor:
    """Return `codes`, which are some of `scheme`, with the scales that `take` takes out of all along a dimension."""
    made: torch.Tensor
    if "channel" not in str(scheme.qscheme()):
        made = quietly(_quantize_per_tensor, codes, scheme.q_scale(), scheme.q_zero_point())
        return made
    axis = scheme.q_per_channel_axis()
    scales, zero_points = take(scheme.q_per_channel_scales(), axis), take(scheme.q_per_channel_zero_points(), axis)
    made = quietly(_quantize_per_channel, codes, scales, zero_points, axis)
    return made


def address_of(tensor: torch.Tensor) -> int:
    """Return the address of the first element, without making a lazily copied storage real as `data_ptr` would."""
    # The private call gives the address of the storage.
    start = int(_data_address(tensor))
    if not start:
        return 0
    return start + int(torch.Tensor.storage_offset(tensor)) * torch.Tensor.element_size(tensor)


def storage_address(tensor: torch.Tensor) -> int:
    """Return the address at which the storage of `tensor` starts; 0 where there is no memory."""
    return int(_data_address(tensor))


def is_lazily_copied(tensor: torch.Tensor) -> bool:
    """Return whether the memory of `tensor` becomes its own at the first write, although others share it until then."""
    try:
        return bool(_is_cow_tensor(tensor))
    except RuntimeError:
        # Sparse and other layouts have no storage to copy.
        return False


def split_factor_of(placement: Any) -> int:
    """Return of how many pieces each rank has a part, which only a private class of placements has; else 1."""
    factor = getattr(placement, "split_factor", 1)
    return factor if type(factor) is int and factor > 0 else 1


def shard_order_of(dtensor: Any) -> list[int] | None:
    """Return in which order the dimensions of the mesh cut a DTensor; None where it is the usual one, or not told."""
    order = getattr(getattr(dtensor, "_spec", None), "shard_order", None)
    return [at for entry in order for at in entry.mesh_dims] if order else None


def simulated_tensors(local_tensor: Any) -> dict[int, torch.Tensor]:
    """Return what a `LocalTensor` holds for each rank that it simulates; nothing where that is kept elsewhere."""
    found = getattr(local_tensor, "_local_tensors", None)
    return found if type(found) is dict else {}


def storage_of_weak(reference: Any) -> torch.UntypedStorage | None:
    """Return the storage of a `StorageWeakRef`; None where it is gone, or torch cannot give it."""
    make = getattr(torch.UntypedStorage, "_new_with_weak_ptr", None)
    try:
        return make(reference.cdata) if make is not None and not reference.expired() else None
    except RuntimeError:
        return None


def is_held_by_tensors(storage: torch.UntypedStorage) -> bool:
    """Return whether tensors have `storage`, which is held here too."""
    return _storage_use_count is None or int(_storage_use_count(storage._cdata)) > 1


def has_constant_tensors(module: Any) -> bool:
    """Return whether the graph of a scripted module has tensors as constants, as a frozen one has all weights."""
    if not is_scripted_table(module.__dict__.get("_modules")):
        return False
    try:
        nodes = list(module.__dict__["_c"]._get_method("forward").graph.nodes())
    except (RuntimeError, KeyError, AttributeError):
        # It has no such method, or this torch keeps it elsewhere.
        return False
    return any(
        one.kind() == "prim::Constant" and one.hasAttribute("value") and one.kindOf("value") == "t" for one in nodes
    )


def is_scripted_table(table: Any) -> bool:
    """Return whether `table` is what `torch.jit.script` puts in the place of a module's dictionary of members."""
    return isinstance(table, _scripted_table)


def set_version(tensor: torch.Tensor, version: int) -> None:
    """Set the number of counted writes of a tensor and its views."""
    torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))

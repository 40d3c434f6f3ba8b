"""Give private names of torch, for which no public ones exist; torch 2.7 or later has all of them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import Any, TypeGuard

import torch
from torch._ops import _len_torch_dispatch_stack_pre_dispatch
from torch.utils._python_dispatch import _disable_current_modes

from tensornp.core.lowlevel.quiet import quietly

_private: Any = torch._C
_functorch: Any = torch._C._functorch
DisableTorchFunction: Any = torch._C.DisableTorchFunction
EnableTorchFunction: Any = torch._C._EnableTorchFunction
InferenceMode: Any = torch._C._InferenceMode
PLAIN_DISPATCH = (torch.Tensor.__torch_dispatch__, torch._C._disabled_torch_dispatch_impl)
"""The values of ``__torch_dispatch__`` of a class that leaves operators to torch."""

_KeySet: Any = torch._C.DispatchKeySet
_USUAL_KEYS: int = (
    _KeySet(torch._C.DispatchKey.BackendSelect) | _KeySet(torch._C.DispatchKey.ADInplaceOrView)
).raw_repr()
"""The keys of a thread without modes; inference mode removes one."""
_included_keys: Any = torch._C._dispatch_tls_local_include_set
dispatch_keys: Any = torch._C._dispatch_keys
disable_functorch: Any = torch._C._DisableFuncTorch
disable_predispatch_modes = _disable_current_modes
functorch_level: Any = _functorch.peek_interpreter_stack
num_dispatch_modes: Any = torch._C._len_torch_dispatch_stack
num_predispatch_modes: Any = _len_torch_dispatch_stack_pre_dispatch
pop_dispatch_mode: Any = torch._C._pop_torch_dispatch_stack
push_dispatch_mode: Any = torch._C._push_on_torch_dispatch_stack
num_function_modes: Any = torch._C._len_torch_function_stack
pop_function_mode: Any = torch._C._pop_torch_function_stack
push_function_mode: Any = torch._C._push_on_torch_function_stack
tracing_state: Any = torch._C._get_tracing_state
set_tracing_state: Any = _private._set_tracing_state
set_grad_enabled: Any = torch._C._set_grad_enabled
is_functorch_wrapper: Any = _functorch.is_functorch_wrapped_tensor
is_functional_wrapper: Any = torch._is_functional_tensor
"""Whether functionalization wraps a tensor; its `numpy()` would return garbage."""
is_zero_tensor: Any = torch._is_zerotensor
"""Whether a tensor is a symbolic zero of autograd, which has no memory."""
num_stored: Any = torch.Tensor._nnz
"""The number of elements (or blocks) that a sparse tensor stores, duplicates counted."""
storage_address: Any = _private._data_address
"""The address of the storage, or 0; unlike `data_ptr`, this does not copy a lazy storage."""
_is_cow_tensor: Any = _private._is_cow_tensor
set_versions: Any = torch._C._autograd._unsafe_set_version_counter
OF_TORCH = (torch.Tensor, torch.nn.Parameter)
ScriptedTable: Any = torch.jit._script.OrderedDictWrapper
"""Holds the members of a module of `torch.jit.script`."""


def without_dispatch_classes() -> Any:
    """Have no tensor class called for operators in a block that reads and writes no values."""
    return _private._ExcludeDispatchKeyGuard(_KeySet(torch._C.DispatchKey.Python))


def is_in_dispatch_mode_or_transform() -> bool:
    """Return whether this thread has keys that only a dispatch mode, a tracer or a transform adds."""
    return bool(_included_keys().raw_repr() | _USUAL_KEYS != _USUAL_KEYS)


def inside_transforms(wrapper: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """Return the tensor inside the wrappers of torch.func, and whether one belongs to vmap."""
    is_batched = False
    while is_functorch_wrapper(wrapper):
        is_batched = is_batched or _functorch.is_batchedtensor(wrapper)
        wrapper = _functorch.get_unwrapped(wrapper)
    return wrapper, is_batched


def stored_elements(sparse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return indices and values of a COO tensor without coalescing it."""
    return torch.Tensor._indices(sparse), quietly(torch.Tensor._values, sparse)


def nested_sizes(nested: Any) -> list[torch.Tensor]:
    names = ("_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets")
    return [getattr(torch.Tensor, name)(nested) for name in names]


def address_of(tensor: torch.Tensor) -> int:
    start: int = storage_address(tensor)
    return start and start + int(torch.Tensor.storage_offset(tensor)) * torch.Tensor.element_size(tensor)


def is_lazily_copied(tensor: torch.Tensor) -> bool:
    """Return whether the storage of `tensor` is copied at its first write."""
    try:
        return bool(_is_cow_tensor(tensor))
    except RuntimeError:
        # Sparse and other layouts have no storage to copy.
        return False


def is_of_torch(obj: Any) -> TypeGuard[torch.Tensor]:
    return type(obj) in OF_TORCH


def is_strided(obj: Any) -> TypeGuard[torch.Tensor]:
    return is_of_torch(obj) and obj.layout is torch.strided and not obj.is_nested


def is_module(obj: Any) -> bool:
    return issubclass(type(obj), torch.nn.Module)


def holds_states(obj: Any) -> bool:
    """Return whether `obj` is an optimizer that has made a step."""
    if not issubclass(type(obj), torch.optim.Optimizer):
        return False
    return any(isinstance(value, torch.Tensor) for held in obj.state.values() for value in held.values())


_STATES = "torch.distributed._composable_state"
GATHERED = "gathered just now"


def is_unsharded(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` lies where FSDP2 has gathered a parameter; 0.1 µs without FSDP."""
    if _STATES not in sys.modules:
        return False
    return storage_address(tensor) in {storage_address(one) for one in _gathered()} - {0}


def _gathered() -> Iterator[torch.Tensor]:
    modules: Any = getattr(sys.modules[_STATES], "_module_state_mapping", {})
    for held in list(modules.values()):
        state = held() if isinstance(held, weakref.ref) else held
        for group in getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]:
            # Most are sharded most of the time, and then have no memory there.
            if not getattr(group, "is_sharded", False):
                for parameter in getattr(group, "fsdp_params", ()):
                    yield from getattr(parameter, "all_gather_outputs", ())
                    yield from getattr(parameter, "_unsharded_inner_tensors", ())

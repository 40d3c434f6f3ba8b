"""The names of torch that tensornp relies on although they are private, each of which a torch may lack.

A name that is missing is None, and costs speed and nothing else: `torch_private` has another way for each. Only what
backward has saved cannot be asked in another way, and a card then says so.
"""

from __future__ import annotations

import logging
from typing import Any

import torch

NEWEST_TRIED = (2, 15)
"""The newest release of torch that the tests are run with."""

PRIVATE_NAMES = (
    "_C.DisableTorchFunction",
    "_C._is_torch_function_all_disabled",
    "_C._DisableFuncTorch",
    "_C._InferenceMode",
    "_C._set_grad_enabled",
    "_C._len_torch_function_stack",
    "_C._EnableTorchFunction",
    "overrides._get_current_function_mode_stack",
    "_C._pop_torch_function_stack",
    "_C._push_on_torch_function_stack",
    "_C._set_default_dtype",
    "_C._len_torch_dispatch_stack",
    "_ops._len_torch_dispatch_stack_pre_dispatch",
    "_C._dispatch_keys",
    "_C.DispatchKeySet.raw_repr",  # since 2.5
    "_C.DispatchKeySet",
    "_C.DispatchKey.Python",
    "_C._ExcludeDispatchKeyGuard",
    "_C._data_address",
    "_C._is_cow_tensor",
    "Tensor._cdata",
    "_C._functorch.is_functorch_wrapped_tensor",
    "_C._functorch.peek_interpreter_stack",
    "_C._get_tracing_state",
    "_C._set_tracing_state",
    "_C._disabled_torch_dispatch_impl",
    "_C._dynamo.eval_frame.set_code_exec_strategy",  # since 2.7
    "_C._dynamo.eval_frame._FrameExecStrategy",
    "_C._dynamo.eval_frame._FrameAction.SKIP",
    "_is_functional_tensor",
    "_is_zerotensor",
    "_make_per_channel_quantized_tensor",
    "_make_per_tensor_quantized_tensor",
    "_VF._unpack_dual",
    "Tensor._nnz",
    "Tensor._indices",
    "Tensor._values",
    "Tensor._nested_tensor_size",
    "Tensor._nested_tensor_strides",
    "Tensor._nested_tensor_storage_offsets",
    "utils._python_dispatch._disable_current_modes",
    "utils._python_dispatch._get_current_dispatch_mode_stack",
    "utils._python_dispatch._push_mode",
    "jit._script.OrderedDictWrapper",
    "_C._autograd.SavedTensor.data",  # since 2.9
    "autograd._get_sequence_nr",
    "_C._current_graph_task_id",
    "autograd.graph._engine_run_backward",
    "_C._current_autograd_node",
    "_C._push_on_torch_dispatch_stack",
    "_C._pop_torch_dispatch_stack",
)


def find(path: str) -> Any:
    """Return the object at a dotted path below torch, or None where this torch does not have it."""
    found: Any = torch
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def missing_names() -> list[str]:
    """Return the private names that this torch does not have; tensornp works without them, more slowly."""
    return [name for name in PRIVATE_NAMES if find(name) is None]


def warn_of_untried_torch() -> None:
    """Log one line if this torch is newer than all that were tried, and say what it lacks."""
    major, minor = (int(number) for number in torch.__version__.split(".")[:2])
    if (major, minor) > NEWEST_TRIED:
        lacks = f"; it lacks {', '.join(missing_names())}, which costs speed" if missing_names() else ""
        logging.getLogger("tensornp").warning(
            "torch %s is newer than the %s that tensornp was tried with%s",
            torch.__version__, ".".join(map(str, NEWEST_TRIED)), lacks,
        )  # fmt: skip

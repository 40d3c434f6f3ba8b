"""The private names of torch that tensornp relies on, each with a fallback, and nothing else.

Private, because torch has no public way to stand outside the modes that a user has entered, or to ask whether a tensor
is a tracer's wrapper. Verified with torch 2.13.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar, cast

import torch

from tensornp.core.unheard import unheard

_F = TypeVar("_F", bound=Callable[..., Any])


def find(path: str) -> Any:
    """Return the object at a dotted path below torch, or None where this torch does not have it."""
    found: Any = torch
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


PRIVATE_NAMES = (
    "_C.DisableTorchFunction",
    "_C._is_torch_function_all_disabled",
    "_C._DisableFuncTorch",
    "_C._InferenceMode",
    "_C._set_grad_enabled",
    "_C._len_torch_function_stack",
    "_C._len_torch_dispatch_stack",
    "_ops._len_torch_dispatch_stack_pre_dispatch",
    "_C._dispatch_keys",
    "_C._data_address",
    "_C._is_cow_tensor",
    "Tensor._cdata",
    "_C._functorch.is_functorch_wrapped_tensor",
    "_C._functorch.peek_interpreter_stack",
    "_C._get_tracing_state",
    "_C._set_tracing_state",
    "_C._disabled_torch_dispatch_impl",
    "_C._dynamo.eval_frame.set_code_exec_strategy",
    "_C._dynamo.eval_frame._FrameExecStrategy",
    "_C._dynamo.eval_frame._FrameAction",
    "_is_functional_tensor",
    "_is_zerotensor",
    "_mkldnn",
    "_validate_sparse_compressed_tensor_args",
    "_make_per_channel_quantized_tensor",
    "_make_per_tensor_quantized_tensor",
    "_neg_view",
    "_VF._unpack_dual",
    "Tensor._nnz",
    "Tensor._indices",
    "Tensor._values",
    "Tensor._nested_tensor_size",
    "utils._python_dispatch._disable_current_modes",
    "jit._script.OrderedDictWrapper",
)
_disable_torch_function = find("_C.DisableTorchFunction")
_is_torch_function_off = find("_C._is_torch_function_all_disabled")
_disable_functorch = find("_C._DisableFuncTorch")
_inference_mode = find("_C._InferenceMode")
_set_grad_enabled = find("_C._set_grad_enabled") or torch.set_grad_enabled
_function_modes = find("_C._len_torch_function_stack")
_dispatch_modes = find("_C._len_torch_dispatch_stack")
_pre_dispatch_modes = find("_ops._len_torch_dispatch_stack_pre_dispatch")
_dispatch_keys = find("_C._dispatch_keys")
_data_address = find("_C._data_address")
_is_cow_tensor = find("_C._is_cow_tensor")
_is_functorch_wrapped = find("_C._functorch.is_functorch_wrapped_tensor")
_functorch_level = find("_C._functorch.peek_interpreter_stack")
_is_functional_tensor = find("_is_functional_tensor")
_is_zerotensor = find("_is_zerotensor")
_get_tracing_state = find("_C._get_tracing_state")
_set_tracing_state = find("_C._set_tracing_state")
_unpack_dual = find("_VF._unpack_dual")
_is_grad_enabled, _is_inference = torch.is_grad_enabled, torch.is_inference_mode_enabled
_set_compile_strategy = find("_C._dynamo.eval_frame.set_code_exec_strategy")
_CAN_TELL_MODES = all(
    (_is_torch_function_off, _dispatch_modes, _pre_dispatch_modes, _functorch_level, _get_tracing_state)
)

PLAIN_DISPATCH = (torch.Tensor.__torch_dispatch__, find("_C._disabled_torch_dispatch_impl"))
"""The values of ``__torch_dispatch__`` of a class that leaves operators to torch."""
MKLDNN: torch.layout | None = find("_mkldnn")
"""The opaque layout of oneDNN, which has no public name."""


def never_compiled(function: _F) -> _F:
    """Have torch.compile break its graph at a call of `function`, and compile neither it nor what it calls.

    As `torch.compiler.disable` does, which would import the whole compiler, and costs time at each call.
    """
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = "tensornp reads values, of which a graph has none"  # type: ignore[attr-defined]
    if _set_compile_strategy is not None:
        skip = find("_C._dynamo.eval_frame._FrameAction").SKIP
        _set_compile_strategy(function.__code__, find("_C._dynamo.eval_frame._FrameExecStrategy")(skip, skip))
    return function


def missing_names() -> list[str]:
    """Return the private names that this torch no longer has; tensornp then works without them, more slowly."""
    return [name for name in PRIVATE_NAMES if find(name) is None]


def unnoticed(function: _F) -> _F:
    """Return `function` as one that stands outside every mode that the user has entered, and in a context of its own.

    No mode, tracer or subclass sees what is done inside, and nothing of it is left behind, whatever ends it: what was
    set is set back in the `finally` of a frame by one call of C, between which Python handles no Ctrl-C. It does so
    between setting a state and entering the block, in any context manager that is written in Python.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_undisturbed():
            return function(*args, **kwargs)
        outside = _outside()
        try:
            next(outside)
            # NumPy keeps print options and what becomes of errors in context variables.
            context = copy_context()
            context.run(_stands_outside.set, True)
            return context.run(function, *args, **kwargs)
        finally:
            outside.close()

    return cast(_F, never_compiled(call))


def undisturbed() -> AbstractContextManager[Any]:
    """Stand outside every mode in the block, which costs next to nothing where one stands there already."""
    return _INSIDE if is_undisturbed() else _Outside()


_INSIDE = nullcontext()
_stands_outside = ContextVar("_stands_outside", default=False)
"""Whether an `unnoticed` function is running: what it stands outside of need not be asked again."""


class _Outside(io.IOBase):
    """Stands outside every mode in a block, at the end of which Ctrl-C cannot come too early.

    A file, because the `__exit__` of files is written in C, and calls `close`: that of the iterator, which is as well.
    """

    def __init__(self) -> None:
        self._outside = _outside()
        self.close = self._outside.close  # type: ignore[method-assign]

    def __enter__(self) -> None:  # type: ignore[override]
        try:
            next(self._outside)
        except BaseException:
            self.close()
            raise


def is_undisturbed() -> bool:
    """Return whether this thread stands outside every mode; False where that is unknown."""
    return (
        _CAN_TELL_MODES
        and _is_torch_function_off()
        and not _is_grad_enabled()
        and not _is_inference()
        and (_stands_outside.get() or not _is_further_in())
    )


def _outside() -> Generator[None, None, None]:
    """Stand outside every mode until the iterator is closed.

    Function modes come off first, because all that follows is itself a call that they would see. Outside of inference
    mode, in which some kinds of tensors cannot be taken apart.
    """
    with _disable_torch_function() if _disable_torch_function else nullcontext():
        is_inference = _is_inference()
        with (_inference_mode or torch.inference_mode)(False) if is_inference else nullcontext():
            had_grad = _is_grad_enabled()
            try:
                _set_grad_enabled(False)
                if _CAN_TELL_MODES and not _is_further_in():
                    yield
                else:
                    yield from _further_outside()
            finally:
                _set_grad_enabled(had_grad)


def _is_further_in() -> bool:
    """Return whether a dispatch mode, a transform or a tracer may be active; to leave them costs more than to ask."""
    return bool(_dispatch_modes() or _get_tracing_state() or _functorch_level() is not None or _pre_dispatch_modes())


def _further_outside() -> Iterator[None]:
    """Stand outside transforms, dispatch modes and `torch.jit.trace`, which would hand out sizes as tensors."""
    tracer = _get_tracing_state() if _get_tracing_state and _set_tracing_state else None
    # This guard works from its construction to its deletion, and the statement keeps it.
    with _disable_functorch() if _disable_functorch else nullcontext():
        try:
            if tracer is not None:
                _set_tracing_state(None)
            yield from _without_dispatch_modes() if _has_dispatch_modes() else (None,)
        finally:
            if tracer is not None:
                _set_tracing_state(tracer)


def _has_dispatch_modes() -> bool:
    """Return whether a dispatch mode may be active; taking them off costs four times this question."""
    return not (_dispatch_modes and _pre_dispatch_modes) or bool(_dispatch_modes() or _pre_dispatch_modes())


def _without_dispatch_modes() -> Iterator[None]:
    disable = find("utils._python_dispatch._disable_current_modes")
    stack = find("utils._python_dispatch._get_current_dispatch_mode_stack")
    modes = stack() if stack else []
    try:
        with disable() if disable else nullcontext():
            yield
    finally:
        # What Ctrl-C has kept torch from putting back.
        for mode in modes[len(stack()) :] if stack else ():
            find("utils._python_dispatch._push_mode")(mode)


def _plain_keys() -> frozenset[int]:
    """Return the dispatch keys of an ordinary dense CPU tensor, which has no lazy bit, wrapper or odd layout."""
    if _dispatch_keys is None:
        return frozenset()
    with undisturbed(), torch.inference_mode(False):
        return frozenset({_dispatch_keys(torch.empty(0, device="cpu")).raw_repr()})


_PLAIN_KEYS = _plain_keys()
_CAN_TELL_PLAIN = bool(_PLAIN_KEYS and _function_modes and _dispatch_modes and _functorch_level)


def is_plain_and_undisturbed(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is an ordinary dense CPU tensor and no mode is active; False where that is unknown."""
    return (
        _CAN_TELL_PLAIN
        and not _function_modes()
        and not _dispatch_modes()
        and _functorch_level() is None
        and not (_get_tracing_state and _get_tracing_state())
        and _dispatch_keys(tensor).raw_repr() in _PLAIN_KEYS
    )


def is_functorch_wrapper(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` stands for a value inside (or escaped from) a torch.func transform."""
    return bool(_is_functorch_wrapped and _is_functorch_wrapped(tensor))


def is_functional_wrapper(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is wrapped by functionalization; its `numpy()` would return garbage."""
    return bool(_is_functional_tensor and _is_functional_tensor(tensor))


def is_zero_tensor(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is a symbolic zero of autograd, which has no memory at all."""
    return bool(_is_zerotensor and _is_zerotensor(tensor))


def has_tangent(tensor: torch.Tensor) -> bool:
    """Return whether forward-mode differentiation carries a tangent along with `tensor`."""
    from torch.autograd import forward_ad

    level = getattr(forward_ad, "_current_level", -1)
    return level >= 0 and _unpack_dual is not None and _unpack_dual(tensor, level=level)[1] is not None


def flip_neg_bit(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view with the negative bit set where it was not, and the other way round: the raw bytes, if it was."""
    return torch._neg_view(tensor)


def num_stored(sparse: Any) -> int:
    """Return how many elements (or blocks) a sparse tensor stores, duplicates counted."""
    return int(sparse._nnz() if hasattr(sparse, "_nnz") else sparse.values().shape[0])


def stored_elements(sparse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices and the values of a COO tensor as stored, which torch has no public way to ask for."""
    if hasattr(sparse, "_indices"):
        return sparse._indices(), sparse._values()
    coalesced = sparse.coalesce()
    return coalesced.indices(), coalesced.values()


def nested_sizes(nested: Any) -> list[torch.Tensor]:
    """Return the tensors by which a strided nested tensor tells its parts apart."""
    names = ("_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets")
    return [getattr(nested, name)() for name in names if hasattr(nested, name)]


def untyped(storage: Any) -> torch.UntypedStorage:
    """Return the bytes under a typed storage; `TypedStorage.untyped` warns that it is deprecated."""
    found: torch.UntypedStorage = getattr(storage, "_untyped_storage", None) or storage.untyped()
    return found


def check_compressed(sparse: Any, pointers: torch.Tensor, others: torch.Tensor) -> None:
    """Raise RuntimeError if the indices of a CSR, CSC, BSR or BSC tensor lie outside of it."""
    validate = find("_validate_sparse_compressed_tensor_args")
    if validate is not None:
        validate(pointers, others, sparse.values(), sparse.shape, sparse.layout)


def quantized_like(codes: torch.Tensor, scheme: torch.Tensor, places: list[torch.Tensor]) -> torch.Tensor:
    """Return `codes`, which are those of `scheme` at `places` (one index tensor a dimension), with their scales."""
    if "channel" not in str(scheme.qscheme()):
        return torch._make_per_tensor_quantized_tensor(codes, scheme.q_scale(), scheme.q_zero_point())
    axis = scheme.q_per_channel_axis()
    chosen = places[axis].flatten()
    scales, zero_points = scheme.q_per_channel_scales()[chosen], scheme.q_per_channel_zero_points()[chosen]
    return torch._make_per_channel_quantized_tensor(codes, scales, zero_points, axis)


def address_of(tensor: torch.Tensor) -> int:
    """Return the address of the first element, without making a lazily copied storage real as `data_ptr` would."""
    if _data_address is None:
        return tensor.data_ptr()
    # The private call gives the address of the storage.
    start = int(_data_address(tensor))
    if not start:
        return 0
    return start + int(torch.Tensor.storage_offset(tensor)) * torch.Tensor.element_size(tensor)


def storage_address(tensor: torch.Tensor) -> int:
    """Return the address at which the storage of `tensor` starts; 0 where there is no memory."""
    if _data_address is None:
        return torch.Tensor.untyped_storage(tensor).data_ptr()
    return int(_data_address(tensor))


def is_lazily_copied(tensor: torch.Tensor) -> bool:
    """Return whether the memory of `tensor` becomes its own at the first write, although others share it until then."""
    try:
        return bool(_is_cow_tensor and _is_cow_tensor(tensor))
    except RuntimeError:
        # Sparse and other layouts have no storage to copy.
        return False


def is_scripted_table(table: Any) -> bool:
    """Return whether `table` is what `torch.jit.script` puts in the place of a module's dictionary of members."""
    kind = find("jit._script.OrderedDictWrapper")
    return kind is not None and isinstance(table, kind)


unheard(globals())

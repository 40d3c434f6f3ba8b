"""What torch has no public word for, by its private names where it has them, and in another way where not.

Private, because torch has no public way to stand outside the modes that a user has entered, or to ask whether a tensor
is a tracer's wrapper. Tried with torch 2.4 to 2.15.
"""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar, cast

import numpy as np
import torch

from tensornp.core.private_names import find
from tensornp.core.unheard import unheard

_F = TypeVar("_F", bound=Callable[..., Any])

_disable_torch_function = find("_C.DisableTorchFunction")
_is_torch_function_off = find("_C._is_torch_function_all_disabled")
_disable_functorch = find("_C._DisableFuncTorch")
_inference_mode = find("_C._InferenceMode")
_set_grad_enabled = find("_C._set_grad_enabled") or torch.set_grad_enabled
_function_modes = find("_C._len_torch_function_stack")
_dispatch_modes = find("_C._len_torch_dispatch_stack")
_pre_dispatch_modes = find("_ops._len_torch_dispatch_stack_pre_dispatch")
_dispatch_keys = find("_C._dispatch_keys")
_raw_repr = find("_C.DispatchKeySet.raw_repr")
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
_nnz, _indices, _values = (find(f"Tensor.{name}") for name in ("_nnz", "_indices", "_values"))
_nested_layout = [find(f"Tensor._nested_tensor_{name}") for name in ("size", "strides", "storage_offsets")]
_quantize_per_tensor = find("_make_per_tensor_quantized_tensor")
_quantize_per_channel = find("_make_per_channel_quantized_tensor")
_disable_dispatch_modes = find("utils._python_dispatch._disable_current_modes")
_mode_stack = find("utils._python_dispatch._get_current_dispatch_mode_stack")
_push_mode = find("utils._python_dispatch._push_mode")
_scripted_table = find("jit._script.OrderedDictWrapper")
_eval_frame = "_C._dynamo.eval_frame"
# What there was in the place of the next ones before 2.7.
_skip_code = find(f"{_eval_frame}.skip_code")
_set_compile_strategy = find(f"{_eval_frame}.set_code_exec_strategy")
_CompileStrategy, _SKIP = find(f"{_eval_frame}._FrameExecStrategy"), find(f"{_eval_frame}._FrameAction.SKIP")
_CAN_TELL_MODES = all(
    (_is_torch_function_off, _dispatch_modes, _pre_dispatch_modes, _functorch_level, _get_tracing_state)
)

PLAIN_DISPATCH = (torch.Tensor.__torch_dispatch__, find("_C._disabled_torch_dispatch_impl"))
"""The values of ``__torch_dispatch__`` of a class that leaves operators to torch."""


def never_compiled(function: _F) -> _F:
    """Have torch.compile break its graph at a call of `function`, and compile neither it nor what it calls.

    As `torch.compiler.disable` does, which would import the whole compiler, and costs time at each call.
    """
    if _set_compile_strategy and _CompileStrategy and _SKIP:
        _set_compile_strategy(function.__code__, _CompileStrategy(_SKIP, _SKIP))
        never = function
    else:
        never = _disabled_when_compiling(function)
    never._torchdynamo_disable = True  # type: ignore[attr-defined]
    never._torchdynamo_disable_msg = "tensornp reads values, of which a graph has none"  # type: ignore[attr-defined]
    return never


def _disabled_when_compiling(function: _F) -> _F:
    """Return `function` as one that calls what `torch.compiler.disable` makes of it once there is a compiler."""
    disabled: list[Any] = []

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return function(*arguments, **keywords)
        if not disabled:
            disabled.append(torch.compiler.disable(function))
        return disabled[0](*arguments, **keywords)

    if _skip_code is not None:
        _skip_code(cast(Any, call).__code__)
    return cast(_F, call)


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
        outside = _way_out()
        try:
            next(outside)
            # NumPy keeps print options and what becomes of errors there.
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
        self._outside = _way_out()
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


def _outside_and_kept() -> Generator[None, None, None]:
    """Do so, and in the end set back what NumPy before 2.0 keeps for the whole process, not for a context."""
    errors, options = np.geterr(), np.get_printoptions()
    try:
        yield from _outside()
    finally:
        np.seterr(**errors)
        np.set_printoptions(**options)


_way_out = _outside if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else _outside_and_kept


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
    stack = _mode_stack if _push_mode else None
    modes = stack() if stack else []
    disabled: Any = _disable_dispatch_modes() if _disable_dispatch_modes else None
    try:
        if disabled:
            disabled.__enter__()
        yield
    finally:
        try:
            if disabled:
                # A `with` that Ctrl-C has ended as it began would leave this to the garbage collector.
                disabled.gen.close()
        finally:
            # What Ctrl-C has kept torch from putting back.
            for mode in modes[len(stack()) :] if stack else ():
                _push_mode(mode)


def _plain_keys() -> frozenset[int]:
    """Return the dispatch keys of an ordinary dense CPU tensor, which has no lazy bit, wrapper or odd layout."""
    if not (_dispatch_keys and _raw_repr):
        return frozenset()
    with undisturbed(), torch.inference_mode(False):
        return frozenset({_raw_repr(_dispatch_keys(torch.empty(0, device="cpu")))})


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
        and _raw_repr(_dispatch_keys(tensor)) in _PLAIN_KEYS
    )


def is_functorch_wrapper(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` stands for a value inside (or escaped from) a torch.func transform."""
    if _is_functorch_wrapped is not None:
        return bool(_is_functorch_wrapped(tensor))
    return _has_key(tensor, "FuncTorch") if _dispatch_keys is not None else _nbytes_of_storage(tensor) is None


def is_functional_wrapper(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is wrapped by functionalization; its `numpy()` would return garbage."""
    if _is_functional_tensor is not None:
        return bool(_is_functional_tensor(tensor))
    return _has_key(tensor, "Functionalize") if _dispatch_keys is not None else _is_nowhere(tensor)


def is_zero_tensor(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is a symbolic zero of autograd, which has no memory at all."""
    return bool(_is_zerotensor(tensor) if _is_zerotensor else _has_key(tensor, "ZeroTensor"))


def _nbytes_of_storage(tensor: torch.Tensor) -> int | None:
    """Return the bytes of the storage, which sparse and other layouts need not have; None where one is missing."""
    try:
        return torch.Tensor.untyped_storage(tensor).nbytes()
    except RuntimeError:
        layout: Any = torch.Tensor.layout
        return None if layout.__get__(tensor) == torch.strided else 0


def _is_nowhere(tensor: torch.Tensor) -> bool:
    """Return whether a tensor with elements has no address."""
    device: Any = torch.Tensor.device
    return bool(_nbytes_of_storage(tensor)) and device.__get__(tensor).type != "meta" and not storage_address(tensor)


def _has_key(tensor: torch.Tensor, name: str) -> bool:
    """Return whether torch dispatches `tensor` by the key `name`; False where that is unknown."""
    return _dispatch_keys is not None and name in str(_dispatch_keys(tensor))


def is_mkldnn(layout: torch.layout) -> bool:
    """Return whether `layout` is the opaque one of oneDNN, which has no public name."""
    return str(layout) == "torch._mkldnn"


def has_tangent(tensor: torch.Tensor) -> bool:
    """Return whether forward-mode differentiation carries a tangent along with `tensor`."""
    from torch.autograd import forward_ad

    level = getattr(forward_ad, "_current_level", 0)
    if level < 0:
        return False
    unpacked = _unpack_dual(tensor, level=level) if _unpack_dual else forward_ad.unpack_dual(tensor)
    return unpacked[1] is not None


def num_stored(sparse: Any) -> int:
    """Return how many elements (or blocks) a sparse tensor stores, duplicates counted."""
    if _nnz is not None:
        return int(_nnz(sparse))
    values = stored_elements(sparse)[1] if sparse.layout == torch.sparse_coo else sparse.values()
    return int(values.shape[0])


def stored_elements(sparse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices and the values of a COO tensor as stored, which torch has no public way to ask for."""
    if _indices is not None and _values is not None:
        return _indices(sparse), _values(sparse)
    try:
        coalesced = sparse.coalesce()
    except RuntimeError:
        # torch adds no float8 numbers.
        coalesced = sparse.to(torch.complex64 if sparse.is_complex() else torch.float32).coalesce()
    return coalesced.indices(), coalesced.values()


def nested_sizes(nested: Any) -> list[torch.Tensor]:
    """Return the tensors by which a strided nested tensor tells its parts apart."""
    return [read(nested) for read in _nested_layout if read is not None]


def untyped(storage: Any) -> torch.UntypedStorage:
    """Return the bytes under a typed storage; `TypedStorage.untyped` warns that it is deprecated."""
    found: torch.UntypedStorage = getattr(storage, "_untyped_storage", None) or storage.untyped()
    return found


def quantized_like(
    codes: torch.Tensor, scheme: torch.Tensor, take: Callable[[torch.Tensor, int], torch.Tensor]
) -> torch.Tensor | None:
    """Return `codes`, which are some of `scheme`, with the scales that `take` takes out of all along a dimension.

    None where torch has no way to put the two together.
    """
    if not (_quantize_per_tensor and _quantize_per_channel):
        return None
    made: torch.Tensor
    if "channel" not in str(scheme.qscheme()):
        made = _quantize_per_tensor(codes, scheme.q_scale(), scheme.q_zero_point())
        return made
    axis = scheme.q_per_channel_axis()
    scales, zero_points = take(scheme.q_per_channel_scales(), axis), take(scheme.q_per_channel_zero_points(), axis)
    made = _quantize_per_channel(codes, scales, zero_points, axis)
    return made


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
        try:
            return torch.Tensor.untyped_storage(tensor).data_ptr()
        except RuntimeError:
            # So torch says that there is no memory.
            return 0
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
    return _scripted_table is not None and isinstance(table, _scripted_table)


unheard(globals())

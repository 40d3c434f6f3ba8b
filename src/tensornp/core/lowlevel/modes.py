"""Leave the modes that a user has entered, so that values can be read and nobody notices."""

from __future__ import annotations

import functools
import io
import operator
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar, cast

import numpy as np
import torch

from tensornp.core.lowlevel.forked import PROCESS
from tensornp.core.lowlevel.private_names import find
from tensornp.core.lowlevel.uncompiled import never_compiled

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")

_disable_torch_function = find("_C.DisableTorchFunction")
_is_torch_function_off = find("_C._is_torch_function_all_disabled")
_disable_functorch = find("_C._DisableFuncTorch")
_inference_mode = find("_C._InferenceMode")
_set_grad_enabled = find("_C._set_grad_enabled")
_function_modes = find("_C._len_torch_function_stack")
_enable_torch_function = find("_C._EnableTorchFunction")
_function_mode_stack = find("overrides._get_current_function_mode_stack")
_pop_function_mode, _push_function_mode = find("_C._pop_torch_function_stack"), find("_C._push_on_torch_function_stack")
_dispatch_modes = find("_C._len_torch_dispatch_stack")
_pre_dispatch_modes = find("_ops._len_torch_dispatch_stack_pre_dispatch")
_functorch_level = find("_C._functorch.peek_interpreter_stack")
_get_tracing_state = find("_C._get_tracing_state")
_set_tracing_state = find("_C._set_tracing_state")
_is_grad_enabled, _is_inference = torch.is_grad_enabled, torch.is_inference_mode_enabled
_disable_dispatch_modes = find("utils._python_dispatch._disable_current_modes")
_pop_dispatch_mode, _push_dispatch_mode = find("_C._pop_torch_dispatch_stack"), find("_C._push_on_torch_dispatch_stack")
_dispatch_keys = find("_C._dispatch_keys")
_exclude_keys, _key_set = find("_C._ExcludeDispatchKeyGuard"), find("_C.DispatchKeySet")
_python_key = find("_C.DispatchKey.Python")
_raw_repr = find("_C.DispatchKeySet.raw_repr")


def unnoticed(function: _F) -> _F:
    """Return `function` as one that stands outside every mode that the user has entered, and in a context of its own.

    No mode, tracer or subclass sees what is done inside, and nothing of it is left behind, whatever ends it: what was
    set is set back in the `finally` of a frame by one call of C, between which Python handles no Ctrl-C. It does so
    between setting a state and entering the block, in any context manager that is written in Python.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # In a block that is `undisturbed`, the context is the user's still.
        if _stands_outside.get() and is_undisturbed():
            return function(*args, **kwargs)
        outside = _outside()
        try:
            next(outside)
            # NumPy keeps print options and what becomes of errors there.
            context = copy_context()
            context.run(_stands_outside.set, True)
            return context.run(function, *args, **kwargs)
        finally:
            outside.close()

    return cast(_F, never_compiled(call))


def is_own_look() -> bool:
    """Return whether what runs is an `unnoticed` function, which a program does not know of."""
    return _stands_outside.get()


def undisturbed() -> AbstractContextManager[Any]:
    """Stand outside every mode in the block, which costs next to nothing where one stands there already."""
    return _INSIDE if is_undisturbed() else _Block(_outside())


def outside(function: Callable[..., _T], *args: Any) -> _T:
    """Call a function `undisturbed`: for what is called again and again, at a sixth of what a block costs.

    Only overrides, autograd and one dispatch mode are left here, as nearly always there is nothing else; each by one
    call of C in a `finally`, and Ctrl-C comes before or after it.
    """
    if is_undisturbed():
        return function(*args)
    num_modes = _dispatch_modes()
    if num_modes > 1 or _is_inference() or _is_further_in(num_modes):
        with _Block(_outside()):
            return function(*args)
    guard, had_grad, popped = _disable_torch_function(), _is_grad_enabled(), list[Any]()
    put_back = map(_push_dispatch_mode, popped)
    try:
        guard.__enter__()
        popped.extend(map(_pop_dispatch_mode, [None] * num_modes))
        try:
            _set_grad_enabled(False)
            return function(*args)
        finally:
            _set_grad_enabled(had_grad)
    finally:
        try:
            list(put_back)
        finally:
            guard.__exit__(None, None, None)


def with_grad(function: Callable[..., _T], *args: Any) -> _T:
    """Call a function where autograd records, `outside` or not."""
    had_grad = _is_grad_enabled()
    try:
        _set_grad_enabled(True)
        return function(*args)
    finally:
        _set_grad_enabled(had_grad)


def below_autograd() -> AbstractContextManager[Any]:
    """Stand outside every mode inside a dispatch mode, where torch records no graph: cheap where it is the only one."""
    is_alone = not _is_inference() and not _is_further_in()
    guard: AbstractContextManager[Any] = _disable_torch_function() if is_alone else undisturbed()
    return guard


_INSIDE = nullcontext()
_stands_outside = ContextVar("_stands_outside", default=False)
"""Whether an `unnoticed` function is running: what it stands outside of need not be asked again."""


class _Block(io.IOBase):
    """A block that an iterator prepares and tidies up, at the end of which Ctrl-C cannot come too early.

    A file, because the `__exit__` of files is written in C, and calls `close`: that of the iterator, which is as well.
    """

    def __init__(self, way: Generator[None, None, None]) -> None:
        self._way = way
        self.close = way.close  # type: ignore[method-assign]

    def __enter__(self) -> None:  # type: ignore[override]
        try:
            next(self._way)
        except BaseException:
            self.close()
            raise


def with_overrides() -> AbstractContextManager[Any]:
    """Let tensor classes override operations again in the block, for code of the user's that is called `undisturbed`.

    No mode sees that code all the same.
    """
    return _Block(_overriding())


def _overriding() -> Generator[None, None, None]:
    stack: list[Any] = _function_mode_stack()
    popped: list[Any] = []
    put_back = map(_push_function_mode, stack)
    try:
        # All of them by one call of C, and so back again: Ctrl-C comes before or after it.
        popped.extend(map(operator.call, [_pop_function_mode] * len(stack)))
        with _enable_torch_function():
            yield
    finally:
        if popped:
            list(put_back)


def below_classes() -> AbstractContextManager[Any]:
    """Have no class of a tensor called for operators in the block: for those that read and write no values."""
    guard: AbstractContextManager[Any] = _exclude_keys(_key_set(_python_key))
    return guard


def is_undisturbed() -> bool:
    """Return whether this thread stands outside every mode."""
    return bool(
        _is_torch_function_off()
        and not _is_grad_enabled()
        and not _is_inference()
        and (_stands_outside.get() or not _is_further_in())
    )


def _outside() -> Generator[None, None, None]:
    """Stand outside every mode until the iterator is closed.

    Function modes come off first, because all that follows is itself a call that they would see. Outside of inference
    mode, in which some kinds of tensors cannot be taken apart.
    """
    with _disable_torch_function():
        is_inference = _is_inference()
        with _inference_mode(False) if is_inference else nullcontext():
            had_grad = _is_grad_enabled()
            try:
                _set_grad_enabled(False)
                if not _is_further_in():
                    yield
                else:
                    yield from _further_outside()
            finally:
                _set_grad_enabled(had_grad)


def _is_further_in(num_modes: int = 0) -> bool:
    """Return whether more dispatch modes, a transform or a tracer may be active; leaving costs more than asking."""
    return bool(
        _dispatch_modes() > num_modes or _get_tracing_state() or _functorch_level() is not None or _pre_dispatch_modes()
    )


def _further_outside() -> Iterator[None]:
    """Stand outside transforms, dispatch modes and `torch.jit.trace`, which would hand out sizes as tensors."""
    tracer = _get_tracing_state()
    # This guard works from its construction to its deletion, and the statement keeps it.
    with _disable_functorch():
        try:
            if tracer is not None:
                _set_tracing_state(None)
            yield from _without_dispatch_modes() if _has_dispatch_modes() else (None,)
        finally:
            if tracer is not None:
                _set_tracing_state(tracer)


def _has_dispatch_modes() -> bool:
    """Return whether a dispatch mode may be active; taking them off costs four times this question."""
    return bool(_dispatch_modes() or _pre_dispatch_modes())


def _without_dispatch_modes() -> Iterator[None]:
    with _disable_dispatch_modes():
        yield


def _plain_keys() -> frozenset[int]:
    """Return the dispatch keys of an ordinary dense CPU tensor, which has no lazy bit, wrapper or odd layout."""
    with undisturbed(), torch.inference_mode(False):
        return frozenset({_raw_repr(_dispatch_keys(torch.empty(0, device="cpu")))})


_PLAIN_KEYS = _plain_keys()


def is_plain_and_undisturbed(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is an ordinary dense CPU tensor and no mode is active."""
    return (
        not _function_modes()
        and not _dispatch_modes()
        and _functorch_level() is None
        and not _get_tracing_state()
        and has_plain_keys(tensor)
    )


def has_plain_keys(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is an ordinary dense CPU tensor; False where that is unknown."""
    return bool(_PLAIN_KEYS) and _raw_repr(_dispatch_keys(tensor)) in _PLAIN_KEYS


def apart(function: _F) -> _F:
    """Return `function` as one that runs where the values of tensors can be read: `unnoticed`, with denormals kept.

    Those are kept whatever `torch.set_flush_denormal` has been told. torch has no way to ask for that setting, so a
    computation tells. In a forked process it runs on one thread: those of OpenMP were not copied with the rest, and to
    wait for them takes for ever.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        num_threads = torch.get_num_threads() if PROCESS.is_forked else 1
        if _SMALLEST * _ONE and num_threads == 1:
            return function(*args, **kwargs)
        is_flushed = not _SMALLEST * _ONE
        try:
            if is_flushed:
                torch.set_flush_denormal(False)
            if num_threads > 1:
                torch.set_num_threads(1)
            return function(*args, **kwargs)
        finally:
            try:
                if is_flushed:
                    torch.set_flush_denormal(True)
            finally:
                if num_threads > 1:
                    torch.set_num_threads(num_threads)

    return unnoticed(cast(_F, call))


_SMALLEST, _ONE = np.float32(1e-45), np.float32(1)

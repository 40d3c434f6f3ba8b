"""Run code outside every torch mode, so that values can be read and no mode sees the calls."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, TypeVar, cast, overload

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.uncompiled import never_compiled

_F = TypeVar("_F", bound=Callable[..., Any])


class _State(threading.local):
    """How the code of this thread runs; torch keeps its modes for each thread, too."""

    is_outside = False
    is_own_call = False


_state = _State()


@overload
def outside_modes(function: _F) -> _F: ...
@overload
def outside_modes() -> AbstractContextManager[None]: ...
def outside_modes(function: _F | None = None) -> _F | AbstractContextManager[None]:
    """Leave every torch mode, tracer and transform, as a context or a decorator.

    Autograd records nothing there. Ctrl-C acts as in any `with` block.
    """
    if function is None:
        return nullcontext() if _state.is_outside else _Outside()

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _state.is_outside:
            return function(*args, **kwargs)
        with _Outside():
            return function(*args, **kwargs)

    return cast(_F, never_compiled(call))


def is_own_call() -> bool:
    """Return whether the current code was called from an `outside_modes` block."""
    return _state.is_own_call


@contextmanager
def with_overrides() -> Generator[None, None, None]:
    """Call the overrides of tensor classes again in a block, for code of the user; modes see nothing."""
    with ExitStack() as stack:
        for _ in range(torch_private.num_function_modes()):
            stack.callback(torch_private.push_function_mode, torch_private.pop_function_mode())
        # The user's code may enter modes again.
        stack.callback(setattr, _state, "is_outside", _state.is_outside)
        _state.is_outside = False
        with torch_private.EnableTorchFunction():
            yield


class _Outside:
    """Leaves the modes; a class, since each value of a followed pass is read in such a block."""

    __slots__ = ("_function", "_has_grad", "_stack", "_was_own_call")

    def __enter__(self) -> None:
        self._stack: ExitStack | None = None
        self._has_grad, self._was_own_call = torch.is_grad_enabled(), _state.is_own_call
        # Function modes come first: they would see the calls that leave the other modes.
        self._function = torch_private.DisableTorchFunction()
        self._function.__enter__()
        try:
            torch_private.set_grad_enabled(False)
            if torch.is_inference_mode_enabled() or torch_private.is_in_dispatch_mode_or_transform():
                self._stack = stack = ExitStack()
                if torch.is_inference_mode_enabled():
                    stack.enter_context(torch_private.InferenceMode(False))
                    torch_private.set_grad_enabled(False)
                if torch_private.functorch_level() is not None:
                    stack.enter_context(torch_private.disable_functorch())
                tracer = torch_private.tracing_state()
                if tracer is not None:
                    torch_private.set_tracing_state(None)
                    stack.callback(torch_private.set_tracing_state, tracer)
                if torch_private.num_predispatch_modes():
                    stack.enter_context(torch_private.disable_predispatch_modes())
                for _ in range(torch_private.num_dispatch_modes()):
                    stack.callback(torch_private.push_dispatch_mode, torch_private.pop_dispatch_mode(None))
            _state.is_outside = _state.is_own_call = True
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(self, cls: Any, error: Any, traceback: Any) -> None:
        _state.is_outside, _state.is_own_call = False, self._was_own_call
        if self._stack is not None:
            self._stack.close()
        torch_private.set_grad_enabled(self._has_grad)
        self._function.__exit__(cls, error, traceback)


with outside_modes():
    PLAIN_KEYS: int = torch_private.dispatch_keys(torch.empty(0, device="cpu")).raw_repr()
"""The dispatch keys of an ordinary dense CPU tensor without lazy bits."""


def is_plain_without_modes(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is an ordinary dense CPU tensor and no mode is active."""
    return (
        torch_private.dispatch_keys(tensor).raw_repr() == PLAIN_KEYS
        and not torch_private.num_function_modes()
        and not torch_private.is_in_dispatch_mode_or_transform()
    )

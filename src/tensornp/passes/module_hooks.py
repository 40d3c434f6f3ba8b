"""Global hooks on the calls of modules, taken away in the end.

Not hooks of each module: encoder layers look for those, and leave their fast path. Never full backward hooks, which
break what a module has written in place (pytorch#61519).
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from tensornp.core.lowlevel.fallback import told
from tensornp.core.lowlevel.private_names import find
from tensornp.passes.recorder import Recorder

_tracing = find("_C._get_tracing_state")
_FOLLOWING: ContextVar[tuple[Recorder, ...]] = ContextVar("_FOLLOWING", default=())
"""What follows the calls of this context; another task of asyncio has another."""


class ModuleHooks:
    """The two hooks by which one recorder learns of calls, from `install` to `remove`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._handles: list[Any] = []

    def install(self) -> None:
        """Begin."""
        _FOLLOWING.set((*_FOLLOWING.get(), self._recorder))
        self._handles.append(torch_module.register_module_forward_pre_hook(self._began))
        register: Callable[..., Any] = torch_module.register_module_forward_hook
        try:
            self._handles.append(register(self._ended, with_kwargs=True, always_call=True))
        except TypeError:
            # torch 2.4 does not pass the keyword arguments.
            self._handles.append(register(self._ended, always_call=True))

    def remove(self) -> None:
        """End, and leave nothing behind: torch forgets its own entry for hooks that take keyword arguments."""
        for handle in self._handles:
            handle.remove()
            for name in ("_global_forward_hooks_with_kwargs", "_global_forward_hooks_always_called"):
                getattr(torch_module, name, {}).pop(handle.id, None)
        self._handles.clear()
        _FOLLOWING.set(tuple(one for one in _FOLLOWING.get() if one is not self._recorder))

    @property
    def is_in_context(self) -> bool:
        """Whether this thread is at work in the context that is followed."""
        return self._recorder in _FOLLOWING.get()

    def _began(self, module: torch.nn.Module, args: Any) -> None:
        # First, and in few words: a compiler that traces this sees that it does nothing.
        if torch.compiler.is_compiling():
            return
        recorder = self._recorder
        if not _is_traced() and recorder.follows(module, recorder in _FOLLOWING.get()):
            try:
                recorder.began(module, args)
            except Exception as error:
                recorder.problems.append(told("a call of a pass", error))

    def _ended(self, module: torch.nn.Module, args: Any, *rest: Any) -> None:
        if torch.compiler.is_compiling():
            return
        recorder = self._recorder
        if not _is_traced() and recorder.follows(module, recorder in _FOLLOWING.get()):
            *kwargs, result = rest
            try:
                recorder.ended(module, kwargs[0] if kwargs else {}, result, len(rest) == 1 and result is None)
            except Exception as error:
                recorder.problems.append(told("a call of a pass", error))


def _is_traced() -> bool:
    """Return whether `torch.jit.trace` is at work, which names values after the local variables of Python, ours too."""
    return bool(_tracing is not None and _tracing())

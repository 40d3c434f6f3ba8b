"""Global hooks on the calls of modules, taken away in the end.

Not hooks of each module: encoder layers look for those, and leave their fast path. Never full backward hooks, which
break what a module has written in place (pytorch#61519).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from tensornp.core.lowlevel.fallback import told
from tensornp.core.namespace.caller import name_of
from tensornp.passes.recording.compiled_in_place import CompiledInPlace
from tensornp.passes.recording.recorder import Recorder

_TOO_DEEP = "calls were not followed that were nested so deep that Python's recursion limit was near"
_tracing = torch._C._get_tracing_state
_FOLLOWING: ContextVar[tuple[Recorder, ...]] = ContextVar("_FOLLOWING", default=())
"""What follows the calls of this context; another task of asyncio has another."""


class ModuleHooks:
    """The two hooks by which one recorder learns of calls, from `install` to `remove`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._compiled, self._num_roots = CompiledInPlace(self._began, self._ended), 0

    def install(self, namespace: Mapping[str, Any]) -> None:
        """Begin; what the names of a namespace reach may be compiled in place."""
        self._compiled.look(namespace.values())
        self._look_at_roots()
        _FOLLOWING.set((*_FOLLOWING.get(), self._recorder))
        torch_module.register_module_forward_pre_hook(self._began)
        register: Callable[..., Any] = torch_module.register_module_forward_hook
        register(self._ended, with_kwargs=True, always_call=True)

    def remove(self) -> None:
        """End, and leave nothing behind: torch forgets its own entry for hooks that take keyword arguments."""
        # Found among all: of one that Ctrl-C has kept from being noted there is no handle.
        for table in ("_global_forward_pre_hooks", "_global_forward_hooks"):
            hooks = getattr(torch_module, table)
            for key in [key for key, hook in list(hooks.items()) if getattr(hook, "__self__", None) is self]:
                for name in ("_global_forward_hooks_with_kwargs", "_global_forward_hooks_always_called"):
                    getattr(torch_module, name, {}).pop(key, None)
                # Last, since it is by this that they are found.
                hooks.pop(key, None)
        self._compiled.remove()
        _FOLLOWING.set(tuple(one for one in _FOLLOWING.get() if one is not self._recorder))

    def compiled_since(self, namespace: Mapping[str, Any]) -> list[str]:
        """Return the names of models of which parts were compiled in place inside the block, unseen."""
        recorder = self._recorder
        objects = {name: one for name, one in namespace.items() if type(name) is str and not name.startswith("_")}
        if recorder.is_bound:
            models = [(reference(), name) for reference, name in recorder.roots]
            objects = {name_of(model, namespace) or name: model for model, name in models}
        return self._compiled.compiled_since(objects)

    @property
    def is_in_context(self) -> bool:
        """Whether this thread is at work in the context that is followed."""
        return self._recorder in _FOLLOWING.get()

    def _look_at_roots(self) -> None:
        roots = self._recorder.roots[self._num_roots :]
        if roots:
            self._num_roots += len(roots)
            self._compiled.look(reference() for reference, _ in roots)

    def _began(self, module: torch.nn.Module, args: Any, *, is_compiled: bool = False) -> None:
        # First, and in few words: a compiler that traces this sees that it does nothing.
        if torch.compiler.is_compiling():
            return
        recorder = self._recorder
        if not _is_traced() and recorder.follows(module, is_followed_here(recorder), is_compiled=is_compiled):
            try:
                recorder.began(module, args, is_compiled=is_compiled)
                self._look_at_roots()
            except RecursionError:
                # There is no room for another call.
                recorder.problems.append(_TOO_DEEP)
            except Exception as error:
                recorder.problems.append(told("a call of a pass", error))

    def _ended(self, module: torch.nn.Module, args: Any, *rest: Any, is_compiled: bool = False) -> None:
        if torch.compiler.is_compiling():
            return
        recorder = self._recorder
        if not _is_traced() and recorder.follows(module, is_followed_here(recorder), is_compiled=is_compiled):
            *kwargs, result = rest
            try:
                recorder.ended(module, kwargs[0] if kwargs else {}, result, len(rest) == 1 and result is None)
            except RecursionError:
                # There is no room for another call.
                recorder.problems.append(_TOO_DEEP)
            except Exception as error:
                recorder.problems.append(told("a call of a pass", error))


def is_followed_here(recorder: Recorder) -> bool:
    """Return whether a recorder follows what is done in this context."""
    return recorder in _FOLLOWING.get()


def _is_traced() -> bool:
    """Return whether `torch.jit.trace` is at work, which names values after the local variables of Python, ours too."""
    return bool(_tracing is not None and _tracing())

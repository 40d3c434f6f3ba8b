"""Modules that `Module.compile` has compiled in place, for which torch calls no hooks: one stands in for their code.

In the instance, where torch keeps that code, and until the block ends: copies and pickles of a module leave it out.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from tensornp.passes.recording.modules_among import modules_among

_CODE = "_compiled_call_impl"


class CompiledInPlace:
    """Has calls of such modules told, from `look` to `remove`, by what hooks for all modules are told."""

    def __init__(self, began: Callable[..., None], ended: Callable[..., None]) -> None:
        self._began, self._ended = began, ended
        self._put: list[tuple[weakref.ref[Any], ...]] = []

    def look(self, objects: Iterable[Any]) -> None:
        """Find them among some objects, and what these hold."""
        for module, code in _compiled_in(objects):
            if isinstance(code, types.FunctionType) and not self._has_seen(code):
                # First, so that Ctrl-C cannot leave it behind.
                call = self._told(module, code)
                self._put.append((weakref.ref(module), weakref.ref(call), weakref.ref(code)))
                module.__dict__[_CODE] = call

    def compiled_since(self, objects: Mapping[str, Any]) -> list[str]:
        """Return the names of the objects with a module below that was compiled after these were looked at."""
        return [
            name for name, one in objects.items() if not all(self._has_seen(code) for _, code in _compiled_in([one]))
        ]

    def remove(self) -> None:
        """Put their own code back, below what another pass has put there since."""
        for reference, call_reference, _ in self._put:
            if (call := call_reference()) is None:
                continue
            held, code = getattr(reference(), "__dict__", {}), call.__wrapped__
            if held.get(_CODE) is call:
                held[_CODE] = code
            for above in _chain(held.get(_CODE)):
                if above.__dict__.get("__wrapped__") is call:
                    above.__wrapped__ = code

    def _has_seen(self, code: Any) -> bool:
        # Once it was put back, nothing may hold the call any more.
        seen = [one for _, *both in self._put for reference in both if (one := reference()) is not None]
        return any(one is other for one in _chain(code) for other in seen)

    def _told(self, module: torch.nn.Module, code: Any) -> Any:
        @functools.wraps(code)
        def call(*args: Any, **kwargs: Any) -> Any:
            code: Any = call.__wrapped__
            if torch.compiler.is_compiling():
                return code(*args, **kwargs)
            self._began(module, args, is_compiled=True)
            try:
                result = code(*args, **kwargs)
            except BaseException:
                self._ended(module, args, None, is_compiled=True)
                raise
            self._ended(module, args, kwargs, result, is_compiled=True)
            return result

        return call


def _chain(code: Any) -> Iterator[Any]:
    """Yield what is called for a module, and what stands below it."""
    while isinstance(code, types.FunctionType):
        yield code
        code = code.__dict__.get("__wrapped__")


def _compiled_in(objects: Iterable[Any]) -> Iterator[tuple[torch.nn.Module, Any]]:
    for module, held in modules_among(objects) if "torch._dynamo" in sys.modules else ():
        if held.get(_CODE) is not None:
            yield module, held[_CODE]

"""Whether a module holds anything to see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.namespace.members import registered

_PACKING = "torch.ao.nn.quantized"
"""Where the modules are that keep their weights in an object of C++, and register none."""


def is_of_module_class(obj: Any) -> bool:
    """Return whether `obj` is a module, whatever it holds."""
    return issubclass(type(obj), torch.nn.Module)


def is_module(obj: Any) -> bool:
    """Return whether `obj` is a module that holds parameters, buffers or packed weights; nothing of a user's runs."""
    return is_of_module_class(obj) and _holds_tensors(obj)


def _holds_tensors(module: Any) -> bool:
    seen: set[int] = set()
    waiting = [module]
    while waiting:
        one = waiting.pop()
        seen.add(id(one))
        if _packs(one):
            return True
        for child, kind in _members(one):
            if kind in ("parameter", "buffer") and is_tensor(child):
                return True
            if issubclass(type(child), torch.nn.Module) and id(child) not in seen:
                waiting.append(child)
    return False


def _packs(module: Any) -> bool:
    if not any(cls.__module__.startswith(_PACKING) for cls in type(module).__mro__):
        return False
    return any(type(value) is torch.ScriptObject for value in list((getattr(module, "__dict__", None) or {}).values()))


def _members(module: Any) -> Iterator[tuple[Any, str]]:
    try:
        yield from ((child, kind) for _, child, kind in registered(module))
    except Exception:
        # Its tables are none.
        return

"""Whether a module holds anything to see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import is_subclass, is_tensor
from tensornp.core.namespace.members import registered


def is_of_module_class(obj: Any) -> bool:
    """Return whether `obj` is a module, whatever it holds."""
    return is_subclass(type(obj), torch.nn.Module)


def is_module(obj: Any) -> bool:
    """Return whether `obj` is a module that holds a parameter or a buffer; nothing of the user's runs."""
    return is_of_module_class(obj) and _holds_tensors(obj)


def _holds_tensors(module: Any) -> bool:
    seen: set[int] = set()
    waiting = [module]
    while waiting:
        one = waiting.pop()
        seen.add(id(one))
        for child, kind in _members(one):
            if kind in ("parameter", "buffer") and is_tensor(child):
                return True
            if is_subclass(type(child), torch.nn.Module) and id(child) not in seen:
                waiting.append(child)
    return False


def _members(module: Any) -> Iterator[tuple[Any, str]]:
    try:
        yield from ((child, kind) for _, child, kind in registered(module))
    except Exception:
        # Its tables are none.
        return

"""Tell whether a module holds tensors."""

from __future__ import annotations

from typing import Any

import torch

from tensornp.core.lowlevel.attributes import is_tensor

_PACKING = "torch.ao.nn.quantized"
"""The package of modules that keep their weights in an object of C++."""


def is_of_module_class(obj: Any) -> bool:
    """Return whether `obj` is a module, with or without tensors."""
    return issubclass(type(obj), torch.nn.Module)


def is_module(obj: Any) -> bool:
    """Return whether `obj` is a module that holds parameters, buffers or packed weights."""
    try:
        return is_of_module_class(obj) and any(map(_holds_tensors, torch.nn.Module.modules(obj)))
    except Exception:
        # Tables that are none, or no call of Module.__init__.
        return False


def _holds_tensors(module: Any) -> bool:
    if any(map(is_tensor, [*module._parameters.values(), *module._buffers.values()])):
        return True
    is_packing = any(cls.__module__.startswith(_PACKING) for cls in type(module).__mro__)
    return is_packing and any(type(value) is torch.ScriptObject for value in vars(module).values())

"""The objects that tensornp displays: tensors, records and containers of tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

from tensornp.render.views import view_of

MAX_SEARCHED = 10_000
"""Leaves among which a container's first tensor is looked for."""
_DISPLAY_METHODS = ("_ipython_display_", "_repr_mimebundle_", "_repr_html_", "_repr_pretty_", "_repr_markdown_")


def is_ours(obj: Any, has_other_display: Callable[[type], bool]) -> bool:
    """Return whether `obj` is a tensor, a record, a module, or a container of tensors.

    `has_other_display` tells of the class of what may have tensors inside whether somebody else shows it.
    """
    if stands_for_tensor(obj):
        return True
    if view_of(obj) is not None:
        return not (isinstance(obj, list) and has_other_display(type(obj)))
    if "torch" not in sys.modules:
        return False
    from tensornp.core.tensor.containers import is_container, leaves

    if holds_tensors(obj):
        return not has_other_display(type(obj))
    if not is_container(obj) or has_other_display(type(obj)):
        return False
    try:
        return any(stands_for_tensor(leaf) for _, leaf in islice(leaves(obj), MAX_SEARCHED))
    except Exception:
        # A container whose iteration raises is left to the front end.
        return False


def has_own_display(cls: type) -> bool:
    """Return whether a class that is no plain container displays itself.

    A TensorDict does, and its values are no part of that.
    """

    if any(issubclass(cls, base) for base in (list, tuple, dict)):
        return False
    bases = cls.__mro__[:-1]
    own = [base for base in bases if base.__module__.partition(".")[0] not in ("tensordict", "typing", "abc")]
    return any(name in vars(base) for base in own for name in _DISPLAY_METHODS)


def is_met_tensor(obj: Any) -> bool:
    """Return whether `obj` is a tensor, without importing torch, which a program need not have."""
    if not hasattr(sys.modules.get("torch"), "Tensor"):
        return False
    from tensornp.core.lowlevel.attributes import is_tensor

    return is_tensor(obj)


def stands_for_tensor(obj: Any) -> bool:
    """Return whether `obj` is a tensor, or stands for one; torch is not imported for it."""
    if not hasattr(sys.modules.get("torch"), "Tensor"):
        return False
    from tensornp.core.tensor.stand_ins import is_tensor_like

    return is_tensor_like(obj)


def unshown_text(obj: Any, reason: str) -> str | None:
    """Return what is left to print of a tensor, whose own `__repr__` could end the process.

    None of anything else.
    """
    if not is_met_tensor(obj):
        return None

    return f"{type(obj).__name__} (not shown: {reason})"


def holds_tensors(obj: Any) -> bool:
    """Return whether `obj` is a module that holds parameters, buffers or packed weights."""
    from torch.nn import Module

    try:
        return issubclass(type(obj), Module) and any(map(_holds_tensors, Module.modules(obj)))
    except Exception:
        # Module.__init__ was not called, or a table of members is not a table.
        return False


def _holds_tensors(module: Any) -> bool:
    import torch

    if any(isinstance(one, torch.Tensor) for table in (module._parameters, module._buffers) for one in table.values()):
        return True
    # Quantized modules keep their weights in an object of C++.
    is_packing = any(cls.__module__.startswith("torch.ao.nn.quantized") for cls in type(module).__mro__)
    return is_packing and any(type(value) is torch.ScriptObject for value in vars(module).values())

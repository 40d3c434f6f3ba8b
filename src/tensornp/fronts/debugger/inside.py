"""Tensors inside other objects, whose own repr asks theirs.

Torch's ends the process where the memory was freed.

Nothing is patched: torch asks the modes that a thread has entered for the repr of each tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_MAX_LINES = 1000
"""Tensors in one object that are told by their lines; each takes some 50 µs."""
_repr, _format = torch.Tensor.__repr__, torch.Tensor.__format__


def told_safely(to_string: Callable[[Any], str], obj: Any, line_of: Callable[[torch.Tensor], str]) -> str:
    """Return the text of `obj` with each tensor as its class and line.

    `to_string` is debugpy's, which goes through lists and dicts itself, and asks all else for its repr.
    """
    others = getattr(to_string, "_repr_other", None)
    if others is not None:
        # It is made anew for each value.
        to_string._repr_other = (  # type: ignore[attr-defined]
            lambda one, level: (_named(one, line_of),) if _is_tensor(one) else others(one, level)
        )
    # The program may have stopped where torch asks no mode.
    enabled = getattr(torch._C, "_EnableTorchFunction", nullcontext)
    with enabled(), _Lines(line_of):
        return to_string(obj)


class _Lines(TorchFunctionMode):
    """Answers for a tensor that is asked for its repr, or to be formatted: with its line."""

    def __init__(self, line_of: Callable[[torch.Tensor], str]) -> None:
        super().__init__()
        self._line_of, self._left = line_of, _MAX_LINES

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (_repr, _format) and args and _is_tensor(args[0]):
            self._left -= 1
            return _named(args[0], self._line_of if self._left >= 0 else lambda _: "(…)")
        return func(*args, **(kwargs or {}))


def _is_tensor(obj: Any) -> bool:
    return type.__subclasscheck__(torch.Tensor, type(obj))


def _named(tensor: torch.Tensor, line_of: Callable[[torch.Tensor], str]) -> str:
    return f"{_name_of(type(tensor))}{line_of(tensor)}"


_name_of = type.__dict__["__name__"].__get__

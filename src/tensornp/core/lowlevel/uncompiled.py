"""Exclude public functions from torch.compile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def never_compiled(function: _F) -> _F:
    """Make torch.compile skip `function` and everything it calls.

    `torch.compiler.disable` does the same, but imports the compiler. If torch is imported later than this function,
    the compiler skips the function alone.
    """
    if "torch" in sys.modules:
        from torch._C._dynamo import eval_frame

        skip = eval_frame._FrameAction.SKIP
        eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(skip, skip))
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = "tensornp reads values, and a graph has none"  # type: ignore[attr-defined]
    return function

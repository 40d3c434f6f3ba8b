"""Functions of ours that torch.compile leaves alone; where torch is not imported, it need not be for that."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


def never_compiled(function: _F) -> _F:
    """Have torch.compile break its graph at a call of `function`, and compile neither it nor what it calls.

    As `torch.compiler.disable` does, which would import the whole compiler, and costs time at each call.
    """
    if "torch" in sys.modules:
        set_strategy, skipped = _way()
        set_strategy(function.__code__, skipped)
        never = function
    else:
        never = _disabled_when_compiling(function)
    never._torchdynamo_disable = True  # type: ignore[attr-defined]
    never._torchdynamo_disable_msg = "tensornp reads values, of which a graph has none"  # type: ignore[attr-defined]
    return never


@functools.cache
def _way() -> tuple[Any, Any]:
    """Return the function that makes torch skip code, and its second argument."""
    from torch._C._dynamo import eval_frame

    skip = eval_frame._FrameAction.SKIP
    return eval_frame.set_code_exec_strategy, eval_frame._FrameExecStrategy(skip, skip)


def _disabled_when_compiling(function: _F) -> _F:
    """Return `function` as one that calls what `torch.compiler.disable` makes of it once there is a compiler."""
    disabled: list[Any] = []

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return function(*arguments, **keywords)
        if not disabled:
            import torch

            disabled.append(torch.compiler.disable(function))
        return disabled[0](*arguments, **keywords)

    return cast(_F, call)

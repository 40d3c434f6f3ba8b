"""Functions of ours that torch.compile leaves alone; where torch is not imported, it need not be for that."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])
_EVAL_FRAME = "_C._dynamo.eval_frame"


def never_compiled(function: _F) -> _F:
    """Have torch.compile break its graph at a call of `function`, and compile neither it nor what it calls.

    As `torch.compiler.disable` does, which would import the whole compiler, and costs time at each call.
    """
    set_strategy, skipped, skip_code = _ways() if "torch" in sys.modules else (None, None, None)
    if set_strategy and skipped:
        set_strategy(function.__code__, skipped)
        never = function
    else:
        never = _disabled_when_compiling(function)
        if skip_code is not None:
            skip_code(cast(Any, never).__code__)
    never._torchdynamo_disable = True  # type: ignore[attr-defined]
    never._torchdynamo_disable_msg = "tensornp reads values, of which a graph has none"  # type: ignore[attr-defined]
    return never


@functools.cache
def _ways() -> tuple[Any, Any, Any]:
    """Return what tells torch to skip code, and how; and what there was in the place of both before 2.7."""
    from tensornp.core.lowlevel.private_names import find

    strategy, skip = find(f"{_EVAL_FRAME}._FrameExecStrategy"), find(f"{_EVAL_FRAME}._FrameAction.SKIP")
    skipped = strategy(skip, skip) if strategy and skip else None
    return find(f"{_EVAL_FRAME}.set_code_exec_strategy"), skipped, find(f"{_EVAL_FRAME}.skip_code")


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

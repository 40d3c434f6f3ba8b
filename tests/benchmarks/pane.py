"""The time of a debugger's pane of variables, beside the repr that debugpy would show."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from side_by_side import Figure, Spread, interleave, timed

NUM_TENSORS = 100
CLAIM, CLAIM_S = 0.5, 0.05


def report(*, quick: bool) -> Iterator[Figure | str]:
    """Yield the times for tensors of some kinds."""
    # It puts its own modules on the path.
    import debugpy.server.api  # noqa: F401
    from _pydevd_bundle.pydevd_safe_repr import SafeRepr
    from _pydevd_bundle.pydevd_xml import get_variable_details

    for what, tensors, claim in _panes():
        names = {"details": get_variable_details, "SafeRepr": SafeRepr, "tensors": tensors}
        seconds = interleave(
            {
                "pane": "[details(t, to_string=SafeRepr()) for t in tensors]",
                "debugpy": "[SafeRepr()(t) for t in tensors]",
            },
            names,
            rounds=5 if quick else 50,
        )
        pane = f"a pane of {NUM_TENSORS} {what}"
        yield timed(pane, seconds["pane"], "debugpy's repr", seconds["debugpy"], at_most=claim)
        yield Figure(pane, Spread.of(seconds["pane"]), at_most=CLAIM_S)


def _panes() -> Iterator[tuple[str, list[torch.Tensor], float | None]]:
    weights = [torch.nn.Parameter(torch.randn(64, 512)) for _ in range(NUM_TENSORS)]
    sum((weight * 2).sum() for weight in weights).backward()  # type: ignore[union-attr]
    yield "float32 tensors, (64, 512)", [torch.randn(64, 512) for _ in range(NUM_TENSORS)], CLAIM
    yield "parameters with gradients, (64, 512)", list(weights), CLAIM
    yield "tensors of one number", [torch.tensor(float(i)) for i in range(NUM_TENSORS)], None

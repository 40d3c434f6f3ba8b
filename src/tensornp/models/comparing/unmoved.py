"""Tell frozen parameters from those without a gradient, for unmoved weights."""

from __future__ import annotations

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.live.gradients import gradients_of


@outside_modes
def why_unmoved(found: WeightsComparison) -> dict[str, str]:
    """Return a fact on each parameter that did not move: "frozen", "no .grad", "zero .grad".

    "no .grad" is said only if another parameter has one now: optimizers set them to None between two steps.
    """
    side = found._second if found._second.is_of_module else found._first
    names = {name: found._pairs[name] if side is found._second else name for name in found if name not in found._tied}
    parameters = {name: side[own] for name, own in names.items() if side[own].kind == "parameter"}
    trained = {name: one for name, one in parameters.items() if one._is_trained and is_of_torch(one.tensor)}
    same_memory = frozenset(found._same_memory)
    unmoved = [name for name in parameters if found[name].equal and name not in same_memory]
    unguarded = Unguarded()
    gradients = gradients_of((trained[name] for name in unmoved if name in trained), unguarded)
    has_any = any(unguarded.grad_of(one.tensor) is not None for one in trained.values())
    why = {name: "frozen" for name in unmoved if parameters[name]._is_trained is False}
    for name in unmoved:
        gradient = gradients.get(parameters[name].name)
        if gradient is not None and gradient.norm is not None:
            why[name] = f"non-zero .grad (norm {gradient.norm:.3g})" if gradient.norm else "zero .grad"
        elif name in trained and has_any and gradient is None and not unguarded.left_out:
            why[name] = "no .grad"
    return why

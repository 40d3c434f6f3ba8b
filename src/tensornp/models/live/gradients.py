"""Compute the statistics of the gradients of live weights, and find out why some did not move."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.values.stats.compute import stats
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry

if TYPE_CHECKING:
    from tensornp.models.comparing.comparison import WeightsComparison


@outside_modes
def gradients_of(
    entries: Iterable[WeightEntry], unguarded: Unguarded, goes_on: Callable[[], bool] = lambda: True
) -> dict[str, TensorStats | None]:
    """Return statistics of the gradients of ordinary tensors by name, None for an unreadable one.

    `unguarded` tells whether some were left out.
    """
    found: dict[str, TensorStats | None] = {}
    for entry in entries:
        if not is_of_torch(entry.tensor) or not entry.requires_grad or not goes_on():
            continue
        gradient = unguarded.grad_of(entry.tensor)
        if gradient is None:
            continue
        try:
            found[entry.name] = stats(gradient, histogram=None)
        except TensornpError:
            found[entry.name] = None
    return found


@outside_modes
def why_unmoved(found: WeightsComparison) -> dict[str, str]:
    """Return a fact on each parameter that did not move: "frozen", "no .grad", "zero .grad".

    "no .grad" is said only if another parameter has one now: optimizers set them to None between two steps.
    """
    side = found._second if found._second.is_of_module else found._first
    names = {name: found._pairs[name] if side is found._second else name for name in found}
    parameters = {name: side[own] for name, own in names.items() if side[own].kind == "parameter"}
    trained = {name: one for name, one in parameters.items() if one._is_trained and is_of_torch(one.tensor)}
    unmoved = [name for name in parameters if found[name].equal and not found[name]._note]
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

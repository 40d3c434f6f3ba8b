"""Compute the gradient norms of live weights while no other code runs, and tell why parameters did not move."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.values.stats.compute import stats
from tensornp.core.values.stats.record import alarm_text
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry

if TYPE_CHECKING:
    from tensornp.models.comparing.comparison import WeightsComparison


class Gradient(NamedTuple):
    """A gradient's alarm and norm, None if unread or without a finite value."""

    norm: float | None
    alarm: str


@outside_modes
def without_gradient(entries: Iterable[WeightEntry], gradients: Collection[str]) -> set[str]:
    """Return the names of weights without a gradient if others have one."""
    trained = {one.name for one in entries if is_of_torch(one.tensor) and one.requires_grad and one.tensor.is_leaf}
    return trained.difference(gradients) if gradients else set()


@outside_modes
def gradients_of(
    entries: Iterable[WeightEntry], unguarded: Unguarded, goes_on: Callable[[], bool] = lambda: True
) -> Mapping[str, Gradient]:
    """Return the gradients of ordinary tensors by name; `unguarded` tells whether some were left out."""
    found: dict[str, Gradient] = {}
    for entry in entries:
        if not is_of_torch(entry.tensor) or not entry.requires_grad or not goes_on():
            continue
        gradient = unguarded.grad_of(entry.tensor)
        if gradient is None:
            continue
        try:
            figures = stats(gradient, histogram=None)
        except TensornpError:
            found[entry.name] = Gradient(None, "")
            continue
        norm = None if figures.norm is None else float(figures.norm)
        found[entry.name] = Gradient(norm, alarm_text(figures))
    return found


@outside_modes
def why_unmoved(found: WeightsComparison) -> dict[str, str]:
    """Return a fact on each parameter that did not move: "frozen", "no .grad", "zero .grad".

    "no .grad" is said only if another parameter has one now: optimizers set them to None between two steps.
    """
    side = found._second if found._second.is_of_module else found._first
    names = {name: found._pairs[name] if side is found._second else name for name in found if name not in found._tied}
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

"""Compute the statistics of the gradients of live weights while no other code runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.values.stats.compute import stats
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry


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

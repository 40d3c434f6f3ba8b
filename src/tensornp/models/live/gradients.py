"""Compute the gradient norms of live weights while no other code runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.values.stats.compute import stats
from tensornp.core.values.stats.record import alarm_text
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry


class Gradient(NamedTuple):
    """A gradient's alarm and norm, None if unread or without a finite value."""

    norm: float | None
    alarm: str


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
            found[entry.name] = Gradient(figures.norm, alarm_text(figures))
        except TensornpError:
            found[entry.name] = Gradient(None, "")
    return found

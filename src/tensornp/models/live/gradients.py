"""The gradients of live weights: their norms, read while nobody else runs code, as torch guards them against no one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.values.stats.compute import stats
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.tensor import PLAIN


@unnoticed
def gradient_norms(
    entries: Iterable[WeightEntry], unguarded: Unguarded, goes_on: Callable[[], bool] = lambda: True
) -> Mapping[str, float]:
    """Return the norms of the gradients that there are, by the names of their weights.

    `unguarded` tells whether some were left out; of what is no ordinary tensor, none is looked at.
    """
    found: dict[str, float] = {}
    for entry in entries:
        if type(entry.tensor) not in PLAIN or not entry.requires_grad or not goes_on():
            continue
        gradient = unguarded.grad_of(entry.tensor)
        if gradient is None:
            continue
        try:
            norm = stats(gradient, histogram=None).norm
        except TensornpError:
            continue
        if norm is not None:
            found[entry.name] = float(norm)
    return found

"""How many weights there are, and how many states of optimizers, which are none."""

from __future__ import annotations

from collections.abc import Iterable

from tensornp.core.lowlevel.text import counted
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.optimizers.param_groups import STATE


def number_told(entries: Iterable[WeightEntry]) -> str:
    """Return "137 weights and 387 optimizer states"; what is registered as None is neither, nor is a state to come."""
    own = [(_is_state(one), one._is_pending) for one in entries if not one._is_nothing]
    num_weights = sum(not is_state for is_state, _ in own)
    told = [counted(num_weights, "weight")] if num_weights or not own else []
    if num_weights < len(own):
        told.append(counted(own.count((True, False)), "optimizer state"))
    return " and ".join(told)


def _is_state(entry: WeightEntry) -> bool:
    """Return whether an optimizer keeps it: scales, which are states of weights too, are below no such key."""
    return entry.kind == "state" and STATE in entry.name.split(".")

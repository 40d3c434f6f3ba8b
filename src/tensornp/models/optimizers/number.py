"""How many weights there are, and how many states of optimizers, which are none."""

from __future__ import annotations

from collections.abc import Iterable

from tensornp.core.lowlevel.units import counted
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.optimizers.param_groups import STATE


def number_told(entries: Iterable[WeightEntry]) -> str:
    """Return "137 weights and 387 optimizer states"; what a module has registered as None is neither."""
    kinds = [_is_state(one) for one in entries if not one.is_nothing]
    num_states = sum(kinds)
    told = [counted(len(kinds) - num_states, "weight")] if num_states < len(kinds) or not kinds else []
    return " and ".join([*told, *([counted(num_states, "optimizer state")] if num_states else [])])


def _is_state(entry: WeightEntry) -> bool:
    """Return whether an optimizer keeps it: scales, which are states of weights too, are below no such key."""
    return entry.kind == "state" and STATE in entry.name.split(".")

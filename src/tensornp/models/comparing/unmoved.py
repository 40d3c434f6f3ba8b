"""Why weights are the same on both sides, as far as that is a fact: one memory, frozen, or without a gradient."""

from __future__ import annotations

from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.lowlevel.units import counted
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.tensor import PLAIN
from tensornp.models.explorer import WeightsExplorer


def memory_told(found: WeightsComparison) -> tuple[str, str]:
    """Return that both sides are one memory, and what would not be; or that some weights are. Empty where none is."""
    num = len(found.same_memory)
    if not num:
        return "", ""
    are = "both sides are the same memory" if num == len(found) else f"{counted(num, 'weight')} of both sides "
    if num < len(found):
        return are + ("is one memory" if num == 1 else "are the same memory"), ""
    shared = f"{_live_name(found)}.state_dict()"
    return are, f": {shared} shares it; copy.deepcopy({shared}) before the step keeps what was"


def _live_name(found: WeightsComparison) -> str:
    """Return by what name a model or an optimizer among the two is reached."""
    live = [side for side in (found.second, found.first) if side.is_of_module] or [found.second]
    side = live[0]
    return side.source if side.source.isidentifier() and _is_reached_by(side, side.source) else "model"


def _is_reached_by(side: WeightsExplorer, name: str) -> bool:
    return any(entry.code.startswith((f"{name}.", f"{name}[")) for entry in side.values())


@unnoticed
def unmoved_told(found: WeightsComparison) -> list[tuple[str, list[str]]]:
    """Return why parameters of a live model have not moved, as a fact, and which are those that might have.

    That one has no gradient tells nothing where none has: they are set to None between two steps.
    """
    side = found.second if found.second.is_of_module else found.first
    entries = {name: side[found.pairs[name] if side is found.second else name] for name in found}
    parameters = {name: one for name, one in entries.items() if one.kind == "parameter" and one.is_trained is not None}
    frozen = sum(found[name].equal and not one.is_trained for name, one in parameters.items())
    told: list[tuple[str, list[str]]] = []
    if frozen:
        told.append((f"{frozen:,} frozen (requires_grad=False)", []))
    unguarded = Unguarded()
    has_grad = {name: _has_grad(one, unguarded) for name, one in parameters.items() if one.is_trained}
    without = [name for name, has in has_grad.items() if found[name].equal and not has]
    if without and not unguarded.left_out and any(has for name, has in has_grad.items() if not found[name].equal):
        told.append((f"{len(without):,} trainable without .grad", without))
    return told


def _has_grad(entry: WeightEntry, unguarded: Unguarded) -> bool:
    """Return whether an ordinary tensor has a gradient; of others, which may compute it, it is taken to have one."""
    return type(entry.tensor) not in PLAIN or unguarded.grad_of(entry.tensor) is not None

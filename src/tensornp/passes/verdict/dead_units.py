"""Units of activations that gave 0 and nothing else in a pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tensornp.core.lowlevel.units import counted
from tensornp.passes.records import Finding, ModuleCall, ZeroUnits
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.wording import listed, named

_MIN_POSITIONS = 32
"""At fewer, a unit that is 0 half of the time may be so by chance."""
_MIN_PART = 0.05
"""Of all units: some are dead in many a model that is well."""


def dead_units(tree: CallTree) -> Iterator[Finding]:
    """Yield the activations of which some units are dead; that all are is told elsewhere."""
    dead = [call for call in _least(tree.ended) if _is_dead(call.zero_units) and _part(call.zero_units) < 1]
    units = [one.zero_units for one in dead if one.zero_units is not None]
    if len(dead) == 1:
        yield Finding("dead units", dead[0].title, f"{said(units[0], f' of {named(dead[0])}')}", (units[0].num_zero,))
    elif dead:
        names = [f"{call.title} ({one.num_zero:,} of {one.num_units:,})" for call, one in zip(dead, units, strict=True)]
        sentence = f"{counted(len(dead), 'activation')} have units that were 0 at all positions: {listed(names)}"
        yield Finding("dead units", dead[0].title, sentence, (len(dead),))


def dead_told(calls: Iterable[ModuleCall]) -> str:
    """Return how many units are dead in calls that are alike, in a few words: of several modules, at most."""
    units = [call.zero_units for call in _least(calls)]
    dead = [one for one in units if one is not None and _is_dead(one)]
    if not dead:
        return ""
    most = max(dead, key=_part)
    limit = "up to " if any(_part(one) != _part(most) for one in units) else ""
    return f"{limit}{most.num_zero:,} of {counted(most.num_units, 'unit')} dead"


def _least(calls: Iterable[ModuleCall]) -> list[ModuleCall]:
    """Return of each module the call in which the fewest units were 0: in the others at least as many are dead."""
    found: dict[str, list[ModuleCall]] = defaultdict(list)
    for call in calls:
        if call.zero_units is not None:
            found[call.title].append(call)
    return [min(each, key=lambda call: _part(call.zero_units)) for each in found.values()]


def said(units: ZeroUnits, of: str = "") -> str:
    """Return how many units were 0: ``37 of 512 units of mlp.1 (ReLU) were 0 at all 512 positions``."""
    verb = "was" if units.num_zero == 1 else "were"
    told = f"{units.num_zero:,} of {counted(units.num_units, 'unit')}{of}"
    return f"{told} {verb} 0 at all {units.num_positions:,} positions"


def _part(units: ZeroUnits | None) -> float:
    return units.num_zero / units.num_units if units is not None else 0.0


def _is_dead(units: ZeroUnits | None) -> bool:
    return units is not None and units.num_positions >= _MIN_POSITIONS and _part(units) >= _MIN_PART

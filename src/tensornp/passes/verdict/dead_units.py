"""Units of activations that gave 0 and nothing else in a pass."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from tensornp.core.lowlevel.text import counted
from tensornp.passes.records import Finding, ModuleCall, ZeroUnits
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.wording import listed, named

_MIN_POSITIONS = 32
"""At fewer, a unit that is 0 half of the time may be so by chance."""
_MIN_PART = 0.05
"""Of all units: some are dead in many a model that is well."""


def dead_units(tree: CallTree) -> Iterator[Finding]:
    """Yield the activations of which some units are dead; that all are is told elsewhere."""
    least = _least(tree.ended)
    dead = [call for call in least if _is_dead(call.zero_in_all) and _part(call.zero_in_all) < 1]
    units = [one.zero_in_all for one in dead if one.zero_in_all is not None]
    num_places = Counter(call.title for call in least)
    places = [f" behind {_giver(call)}" if num_places[call.title] > 1 and _giver(call) else "" for call in dead]
    if len(dead) == 1:
        sentence = said(units[0], f" of {named(dead[0], has_nth=False)}{places[0]}")
        yield Finding("dead units", dead[0].title, sentence, (units[0].num_zero,))
    elif dead:
        names = [
            f"{call.title}{place} ({one.num_zero:,} of {one.num_units:,})"
            for call, place, one in zip(dead, places, units, strict=True)
        ]
        sentence = f"{counted(len(dead), 'activation')} have units that were 0 at all positions: {listed(names)}"
        yield Finding("dead units", dead[0].title, sentence, (len(dead),))


def dead_told(calls: Iterable[ModuleCall]) -> str:
    """Return how many units are dead in calls that are alike, in a few words: of several modules, at most."""
    units = [call.zero_in_all for call in _least(calls)]
    dead = [one for one in units if one is not None and _is_dead(one)]
    if not dead:
        return ""
    most = max(dead, key=_part)
    limit = "up to " if any(_part(one) != _part(most) for one in units) else ""
    return f"{limit}{most.num_zero:,} of {counted(most.num_units, 'unit')} dead"


def _least(calls: Iterable[ModuleCall]) -> list[ModuleCall]:
    """Return a call of each module, whose units are those of all its calls; behind another module they are others."""
    found: dict[tuple[str, str], list[ModuleCall]] = defaultdict(list)
    for call in calls:
        if call.zero_in_all is not None:
            found[call.title, _giver(call)].append(call)
    return [min(each, key=lambda call: _part(call.zero_in_all)) for each in found.values()]


def _giver(call: ModuleCall) -> str:
    """Return the module whose result an activation got; empty where none is known."""
    return call.inputs[0].made_by if call.inputs and call.inputs[0].maker is not None else ""


def said(units: ZeroUnits, of: str = "") -> str:
    """Return how many units were 0: ``37 of 512 units of mlp.1 (ReLU) were 0 at all 512 positions``."""
    verb = "was" if units.num_zero == 1 else "were"
    told = f"{units.num_zero:,} of {counted(units.num_units, 'unit')}{of}"
    return f"{told} {verb} 0 at all {units.num_positions:,} positions"


def _part(units: ZeroUnits | None) -> float:
    return units.num_zero / units.num_units if units is not None else 0.0


def _is_dead(units: ZeroUnits | None) -> bool:
    return units is not None and units.num_positions >= _MIN_POSITIONS and _part(units) >= _MIN_PART

"""Which names of a comparison are others of one weight: a model ties them, and a file may keep them twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.repeated import same_elements_as
from tensornp.models.explorer import WeightsExplorer


def tied_names(first: WeightsExplorer, second: WeightsExplorer, pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the names in the first that are further names of a weight on either side, each with the first of them."""
    called = {b: a for a, b in pairs.items()}
    groups: dict[str, str] = {}
    for a, b in pairs.items():
        others = [*_others(first[a]), *(called[name] for name in _others(second[b]) if name in called)]
        earlier = next((name for name in others if name in groups), None)
        groups[a] = groups[earlier] if earlier is not None else a
    return {name: one for name, one in groups.items() if name != one}


def _others(entry: WeightEntry) -> Iterable[str]:
    return (*entry.tied_to, *same_elements_as(entry))

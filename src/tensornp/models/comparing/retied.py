"""Which weights share their memory with others on one side than on the other."""

from __future__ import annotations

from collections.abc import Mapping

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.memory.footprint import extents_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.tensor import TensorSource
from tensornp.models.explorer import WeightsExplorer


def retied(first: WeightsExplorer, second: WeightsExplorer, pairs: dict[str, str]) -> tuple[str, ...]:
    """Return the names in the first of weights that share their memory with others in the second."""
    known = {a: b for a, b in pairs.items() if _is_known(first[a]) and _is_known(second[b])}
    own, others = (_together({name: explorer[one] for name, one in names.items()}) for explorer, names in (
        (first, {a: a for a in known}), (second, known)
    ))  # fmt: skip
    return tuple(name for name in known if own[name] != others[name])


def _is_known(entry: WeightEntry) -> bool:
    """Return whether it is known what it is tied to: a file that has a copy for each name tells nothing of that."""
    return isinstance(entry._source, TensorSource) or bool(entry.tied_to)


@outside_modes
def _together(entries: Mapping[str, WeightEntry]) -> dict[str, frozenset[str]]:
    """Return the names of the same elements of memory, by each of them."""
    groups: dict[object, list[str]] = {}
    for name, entry in entries.items():
        groups.setdefault(_elements_of(entry), []).append(name)
    together = {name: some for some in map(frozenset, groups.values()) for name in some}
    return {name: together[name] for name in entries}


def _elements_of(entry: WeightEntry) -> object:
    """Return what is equal for two weights of the same elements."""
    if not isinstance(entry._source, TensorSource):
        return entry.location, min(entry.name, *entry.tied_to)
    extents = extents_of(entry.tensor) if not entry.problem else ()
    return (extents, entry.shape, entry.dtype) if extents else id(entry)

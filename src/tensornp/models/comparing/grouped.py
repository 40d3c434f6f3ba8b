"""Which parameters the groups of an optimizer have, as far as one that is on either side of a comparison tells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tensornp.models.entries.entry import WeightEntry
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.optimizers.param_groups import GROUPS, NAMES, STATE

_NUMBERED = re.compile(rf"{STATE}\.\d+")
_PARAM = re.compile(rf"(?:.*\.)?{GROUPS}\.\d+\.params\.\d+")
_NAME = re.compile(rf"(?:.*\.)?{GROUPS}\.\d+\.{NAMES}\.\d+")


class Grouped(NamedTuple):
    """The names of the parameters in the groups of an optimizer; None, and how many they are, where none is told."""

    source: str
    names: frozenset[str] | None
    num: int
    shared: frozenset[str] = frozenset()

    def has(self, name: str) -> bool | None:
        """Return whether a parameter is in a group; None where that is not told.

        In a dictionary it is below a key; where it is so below several, the optimizer may be of any of these.
        """
        below = name.partition(".")[2]
        if self.names is None or (name not in self.names and below in self.names and below in self.shared):
            return None
        return name in self.names or below in self.names


def grouped_in(side: WeightsExplorer) -> Grouped | None:
    """Return what the optimizers among the weights of one side tell; None where there is none."""
    names = {value for key, value in side.metadata.items() if type(value) is str and _NAME.fullmatch(key)}
    if side.is_of_module:
        # A live optimizer has an entry for each of its parameters, also before the first step.
        names |= set(filter(None, map(_parameter_of, side.values())))
    num = sum(_PARAM.fullmatch(key) is not None for key in side.metadata)
    below = Counter(entry.name.partition(".")[2] for entry in side.values() if entry.kind == "parameter")
    shared = frozenset(name for name, count in below.items() if count > 1)
    return Grouped(side.source, frozenset(names) or None, len(names) or num, shared) if names or num else None


def _parameter_of(entry: WeightEntry) -> str:
    """Return the name of the parameter of which a live optimizer keeps a state; empty where none is told."""
    numbers = [_NUMBERED.match(one) for one in entry._saved_as or () if entry.kind == "state"]
    tails = [found.string[found.end() :] for found in numbers if found is not None]
    called = entry.name.partition(f"{STATE}.")[2]
    return called.removesuffix(tails[0]) if tails and not called.startswith(GROUPS) else ""


def grouped_of(*sides: WeightsExplorer) -> Iterator[Grouped]:
    """Yield what is told of the sides that have an optimizer, those that tell names first."""
    found = [one for one in map(grouped_in, sides) if one is not None]
    yield from sorted(found, key=lambda one: one.names is None)

"""Which NaN or infinity comes before a place or behind it, and which of how many it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.tensor.strides import place_of
from tensornp.core.values.find.locate import Array, Index, Search, supply_to_search


@dataclass(frozen=True, slots=True)
class Beside:
    """An element beside a place, and that it is the one of that `number`, from 1 on, of `count` that there are."""

    index: Index
    number: int
    count: int


@never_compiled
def place_beside(tensor: Any, what: str, at: Index | None = None, *, is_back: bool = False) -> Beside | None:
    """Return the next "nan" or "inf" behind the index `at`, or the last one before it, going round; None of none.

    Reads every element, to count them.
    """
    supply = supply_to_search(tensor, what)
    search = _SearchBeside(supply, what)
    search.after = place_of(at, supply.shape) if at else -1
    search.run(is_first_enough=False)
    if not search.count:
        return None
    if is_back:
        flat, number = (search.before, search.num_before) if search.num_before else (search.last, search.count)
    else:
        is_there = search.num_to < search.count
        flat, number = (search.behind, search.num_to + 1) if is_there else (search.found[0], 1)
    return Beside(search.index(flat), number, search.count)


class _SearchBeside(Search):
    """One that counts the elements before and up to a place, and keeps those beside it."""

    num_before = num_to = 0
    before = behind = last = -1

    def _note(self, places: Array, first: int) -> None:
        if not len(places):
            return
        flat = places + first
        before, to = (int(np.searchsorted(flat, self.after, side)) for side in ("left", "right"))
        self.found = self.found or [int(flat[0])]
        self.before = int(flat[before - 1]) if before else self.before
        self.behind = int(flat[to]) if to < len(flat) and self.behind < 0 else self.behind
        self.last = int(flat[-1])
        self.num_before, self.num_to, self.count = self.num_before + before, self.num_to + to, self.count + len(flat)

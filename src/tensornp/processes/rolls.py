"""Who has answered, by their ranks, and in a sentence each who has not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tensornp.core.lowlevel.text import counted, number_ranges
from tensornp.models.names.quoted import MAX_INSIDE, cut
from tensornp.processes.asking import Asker, Told
from tensornp.processes.transport import Id

_MAX_SAID = 12
"""Runs of ranks that a sentence names."""


class Silent(dict[Id, str]):
    """By id, why a process has not answered, in a sentence; `missing` are the ranks that no process is.

    `told` has one sentence for all that have the same to say.
    """

    missing: tuple[int, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[tuple[str, str], list[Any]] = {}

    def note(self, id: Id, noun: str, number: Any, said: str) -> None:
        """Take why one has not answered, of which `said` goes on behind its name."""
        self[id] = f"{ranks_text([number], noun)} {said}"
        self._names.setdefault((noun, said), []).append(number)

    @property
    def told(self) -> list[str]:
        """The sentences."""
        every = [f"{ranks_text(of, noun)}{':' * (len(of) > 1)} {said}" for (noun, said), of in self._names.items()]
        return every + ([f"nobody here is {ranks_text(self.missing)}"] if self.missing else [])


class Roll:
    """Who has answered one question, and who has not.

    Attributes
    ----------
    answered : tuple
        The ids of those that have.
    silent : Silent
    num_ranks : int
        How many there are in all, asked or not: as many as their groups say.
    found : dict
        By id, what was answered.
    """

    def __init__(self, asker: Asker, ids: Iterable[Id], told: Mapping[Id, Told]) -> None:
        self._ranks: dict[Id, Any] = {}
        self.found: dict[Id, Any] = {}
        self.silent = Silent()
        holders: dict[Any, Id] = {}
        for id in ids:
            one = told[id]
            if one.said:
                known = asker.ranks.get(id)
                noun, number = ("engine", id) if known is None else ("rank", known)
                self.silent.note(id, noun, number, one.said)
                continue
            rank = id if one.rank is None else one.rank
            if (first := holders.setdefault(rank, id)) != id:
                said = f"says that it is rank {rank}, as {ranks_text([first], 'engine')} does, and is left out"
                self.silent.note(id, "engine", id, said)
                continue
            self._ranks[id], self.found[id] = rank, one.found
        if all(type(rank) is int for rank in self._ranks.values()):
            self.found = dict(sorted(self.found.items(), key=lambda one: self._ranks[one[0]]))
        self.answered = tuple(self.found)
        groups = max([one.num_ranks for one in told.values()], default=0)
        self.num_ranks = max(len(told), groups)
        told_before = [asker.ranks.get(id) for id in self.silent]
        missing = set(range(groups)).difference(self._ranks.values(), told_before)
        # Who has never told its rank may be one of them.
        self.silent.missing = tuple(sorted(missing)) if len(missing) > told_before.count(None) else ()

    def rank_of(self, id: Id) -> Any:
        """Return the rank of a process that has answered; its id where it has none."""
        return self._ranks[id]

    @property
    def told(self) -> str:
        """Return how many are spoken of: "32 ranks", "31 of 32 ranks"."""
        num = len(self.found)
        return counted(num, "rank") if num == self.num_ranks else f"{num:,} of {counted(self.num_ranks, 'rank')}"


def ranks_text(ranks: Iterable[Any], noun: str = "rank") -> str:
    """Return ranks in words: "rank 7", "ranks 0..3, 9"."""
    every = list(ranks)
    is_numbered = all(type(one) is int for one in every)
    said = list(number_ranges(sorted(every))) if is_numbered else [cut(str(one), MAX_INSIDE) for one in every]
    more = f" and {len(said) - _MAX_SAID:,} more" if len(said) > _MAX_SAID else ""
    return f"{noun}{'s' * (len(every) != 1)} {', '.join(said[:_MAX_SAID])}{more}"

"""Whether all ranks have come to the same line: decided once for all of them, in the store by which they have met.

A barrier with a timeout cannot decide it: where it ends, one rank may have passed it while another one gives up. Here
one `compare_set` decides, so that either all ranks go on or none; and no collective is issued.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.torch_private import store_of_all_ranks
from tensornp.core.lowlevel.units import number_ranges
from tensornp.errors import RanksError

WAIT_S = 2.0
"""How long the first rank waits for the last one."""
_POLL_S = 0.01
_MAX_TOLD = 4
"""Ranks whose words are told."""


def meet(ranks: Sequence[int], rank: int, facts: str, problem: str = "") -> Any:
    """Return a store for what `ranks` do next, once each of them has come with the same `facts` and no `problem`.

    Raises
    ------
    RanksError
        On each rank that has come, within some 2 seconds: one did not come, has a problem, or brings other facts.
    """
    store = store_of_all_ranks()
    if store is None:
        raise RanksError("the ranks cannot meet: this torch does not tell by which store they have met before")
    store = below(store, f"tensornp/{','.join(number_ranges(sorted(ranks)))}")
    _check_that_it_answers(store)
    deadline = time.monotonic() + WAIT_S
    try:
        number = store.add("closed", 0)
        while True:
            room = _Room(store, number, ranks, rank)
            verdict = room.verdict() or room.attend(json.dumps([facts, problem]), deadline)
            if room.has_come and not verdict["said"]:
                return room.store
            if room.has_come and rank not in verdict["missing"]:
                raise RanksError(verdict["said"])
            # It was closed before this rank came, which is the first of the next one, or finds others there.
            number += 1
    except RuntimeError as error:
        if isinstance(error, RanksError):
            raise
        raise RanksError(f"the ranks cannot meet: {error_text(error)}") from None


def _check_that_it_answers(store: Any) -> None:
    """Raise RanksError for a store whose process has stopped: each call of it would wait for minutes."""
    has_answered = Event()

    def ask() -> None:
        # What it raises, the next call raises too.
        with suppress(Exception):
            store.check(["closed"])
        has_answered.set()

    Thread(target=ask, name="tensornp: store", daemon=True).start()
    if not has_answered.wait(WAIT_S):
        raise RanksError("the ranks cannot meet: the store by which they have met does not answer; has rank 0 stopped?")


def below(store: Any, name: str) -> Any:
    """Return a store whose keys begin with a name."""
    dist: Any = torch.distributed
    return dist.PrefixStore(name, store)


class _Room:
    """One meeting, of which the first verdict counts."""

    def __init__(self, store: Any, number: int, ranks: Sequence[int], rank: int) -> None:
        self._all, self.store = store, below(store, str(number))
        self._ranks, self._rank = ranks, rank
        self.has_come = False

    def verdict(self) -> dict[str, Any] | None:
        """Return why it has failed, and who was missing; None while that is open."""
        return json.loads(self.store.get("verdict")) if self.store.check(["verdict"]) else None

    def attend(self, word: str, deadline: float) -> dict[str, Any]:
        """Come with a word, and return the verdict, which this rank gives if it is the last one, or has waited."""
        self.has_come = True
        try:
            self.store.set(f"word/{self._rank}", word)
            if self.store.add("num_come", 1) == len(self._ranks):
                self._decide(self._compared())
            while (verdict := self.verdict()) is None:
                if time.monotonic() >= deadline:
                    self._decide_late()
                time.sleep(_POLL_S)
        except BaseException as error:
            # Nobody goes on without this rank.
            with suppress(RuntimeError):
                self._decide(f"rank {self._rank} was stopped by {error_text(error)}; run this line on all ranks")
            raise
        return verdict

    def _decide(self, said: str, missing: Sequence[int] = ()) -> None:
        mine = json.dumps({"said": said, "missing": list(missing), "by": self._rank})
        if self.store.compare_set("verdict", "", mine).decode() == mine:
            self._all.add("closed", 1)

    def _decide_late(self) -> None:
        missing = sorted(rank for rank in self._ranks if not self.store.check([f"word/{rank}"]))
        said = f"{_named(missing)} did not join; run this line on all ranks" if missing else self._compared()
        self._decide(said, missing)

    def _compared(self) -> str:
        """Return what keeps the ranks from going on; empty if nothing does."""
        words = {rank: json.loads(self.store.get(f"word/{rank}")) for rank in self._ranks}
        failed = {rank: problem for rank, (_, problem) in words.items() if problem}
        if failed:
            told = [f"rank {rank} has failed with {problem}" for rank, problem in list(failed.items())[:_MAX_TOLD]]
            others = [rank for rank in sorted(self._ranks) if rank not in failed]
            return "; ".join(told) + (f"; nothing was gathered on {_named(others)} either" if others else "")
        own = words[self._rank][0]
        other = next((rank for rank, (facts, _) in words.items() if facts != own), None)
        if other is None:
            return ""
        return f"rank {self._rank} gathers {own}, and rank {other} {words[other][0]}; take the same tensor on all ranks"


def _named(ranks: list[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(number_ranges(ranks))}"

"""`RankWeights`: the weights of all ranks by name, and in which of them ranks differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.text import counted
from tensornp.errors import NoSuchWeightError
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, closest, cut, shown_name
from tensornp.processes.asking import Asker, Asking, Told
from tensornp.processes.drift import Drift, drift_on
from tensornp.processes.facts import Facts, listed, unlike, unpacked, whole
from tensornp.processes.rolls import Roll, ranks_text
from tensornp.processes.shown import Shown
from tensornp.processes.stats import RankStats, stats_on

_MAX_ROWS = 2_000_000
"""Weights that are listed, of all groups together: a gigabyte holds them."""
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks that hold weights of the same facts.

    Attributes
    ----------
    ranks : tuple
    num_weights, parameters : int
        Of each of them; a sharded weight counts with all of its elements.
    nbytes : tuple of int
        What each of them holds itself.
    is_listed : bool
        Whether one of them has told its weights in time.
    """

    ranks: tuple[Any, ...]
    num_weights: int
    parameters: int
    nbytes: tuple[int, ...]
    is_listed: bool


@dataclass(frozen=True, slots=True)
class OnRanks:
    """One weight: its `Facts` where most ranks agree, all `variants` with the ranks of each, and who lacks it."""

    name: str
    variants: tuple[tuple[Facts, tuple[Any, ...]], ...]
    lacking: tuple[Any, ...] = ()

    @property
    def facts(self) -> Facts:
        """The facts on most ranks."""
        return max(self.variants, key=lambda one: len(one[1]))[0]

    @property
    def ranks(self) -> tuple[Any, ...]:
        """The ranks that have it."""
        return tuple(rank for _, ranks in self.variants for rank in ranks)


class _Mark(NamedTuple):
    """What a process tells of all of its weights together."""

    digest: bytes
    num_weights: int
    parameters: int
    nbytes: int


class RankWeights(Shown, Mapping[str, OnRanks]):
    """The weights that all ranks have by one name; a mapping from name to `OnRanks`.

    Attributes
    ----------
    expression : str
        What was looked for on each rank.
    answered : tuple
        The ids of the processes that have answered.
    silent : dict
        By id, why a process has not, in a sentence.
    groups : tuple of RankGroup
        Ranks with the same facts, the largest group first.
    """

    def __init__(self, asker: Asker, expression: str, roll: Roll, rows: Mapping[bytes, Mapping[str, Facts]]) -> None:
        self._asker, self.expression, self._roll = asker, expression, roll
        self.answered, self.silent = roll.answered, roll.silent
        held: dict[bytes, list[Any]] = {}
        for id in roll.answered:
            held.setdefault(roll.found[id].digest, []).append(id)
        # Of as many ranks, those with most weights are first: the others lack some.
        ordered = sorted(held.items(), key=lambda one: (-len(one[1]), -roll.found[one[1][0]].num_weights))
        self.groups = tuple(self._group(ids, digest in rows) for digest, ids in ordered)
        # Of each name its facts, and by a bit each which groups have these.
        self._bits: dict[str, dict[Facts, int]] = {}
        self._of_bits: dict[int, tuple[Any, ...]] = {}
        for number, (digest, _) in enumerate(ordered):
            for name, facts in rows.get(digest, {}).items():
                bits = self._bits.setdefault(name, {})
                bits[facts] = bits.get(facts, 0) | 1 << number

    def _group(self, ids: list[Any], is_listed: bool) -> RankGroup:
        marks: list[_Mark] = [self._roll.found[id] for id in ids]
        ranks = tuple(map(self._roll.rank_of, ids))
        nbytes = tuple(mark.nbytes for mark in marks)
        return RankGroup(ranks, marks[0].num_weights, marks[0].parameters, nbytes, is_listed)

    def __getitem__(self, name: str) -> OnRanks:
        """Return what is told of one weight; NoSuchWeightError where no rank has it."""
        if not isinstance(name, str):
            raise NoSuchWeightError(f"weights are indexed by name, got {an_instance(name)}; list(w) shows the names")
        if name not in self._bits:
            raise NoSuchWeightError(f"no rank has {shown_name(name)}{closest(name, self._bits)}")
        bits = self._bits[name]
        of = {facts: self._ranks(one) for facts, one in bits.items()}
        any_of = sum(bits.values())
        return OnRanks(name, tuple(of.items()), self._ranks(~any_of))

    def _ranks(self, bits: int) -> tuple[Any, ...]:
        """Return the ranks of listed groups whose bits are set."""
        if bits not in self._of_bits:
            chosen = [one for i, one in enumerate(self.groups) if bits >> i & 1 and one.is_listed]
            self._of_bits[bits] = tuple(rank for one in chosen for rank in one.ranks)
        return self._of_bits[bits]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bits)

    def __len__(self) -> int:
        return len(self._bits)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._bits)

    def stats(self, name: str) -> RankStats:
        """Return the statistics of one weight on all ranks, each of which reads its own part; nothing counts twice."""
        return stats_on(self._asker, self.expression, self[name].name)

    def drift(self, max_nbytes: int = 2**26) -> Drift:
        """Return which weights differ where they should be the same: by name, on which ranks, and from which block on.

        Replicas of a sharded weight are compared, and plain tensors. Of one of more than `max_nbytes`, samples are.
        """
        return drift_on(self._asker, self.expression, max_nbytes)

    @property
    def agree(self) -> bool:
        """Whether most ranks that have answered have the same weights, or all have most of them in common."""
        if not self.groups:
            return False
        first = self.groups[0]
        return 2 * len(first.ranks) > len(self.answered) or 2 * self._num_common > first.num_weights

    @property
    def _num_common(self) -> int:
        """The weights that are of the same facts in all groups that are listed."""
        return len(self._bits) - len(self._odd)

    @property
    def told(self) -> str:
        """Return in what all ranks agree that have answered: "32 ranks: the same 1,200 tensors", "10 in common"."""
        if not self.groups:
            return f"0 of {counted(self._roll.num_ranks, 'rank')}"
        num = self.groups[0].num_weights
        if len(self.groups) == 1:
            return f"{self._roll.told}: {f'the same {num:,} tensors' if num != 1 else 'the same tensor'}"
        if self.agree:
            listed = "" if all(group.is_listed for group in self.groups) else ", where they are listed"
            return f"{self._roll.told}: {counted(self._num_common, 'tensor')} in common{listed}"
        return f"{self._roll.told}: {counted(len(self), 'tensor')} in all, in {len(self.groups):,} groups of ranks"

    def differences(self) -> Iterator[str]:
        """Yield in what the other groups differ from the largest, in a sentence each."""
        for number, group in enumerate(self.groups):
            who = ranks_text(group.ranks)
            if not self.agree:
                yield f"{who}: {counted(group.num_weights, 'tensor')}, {counted(group.parameters, 'element')}"
            if not group.is_listed:
                yield f"{who}: {counted(group.num_weights, 'tensor')}, not listed"
            elif number and self.agree and self.groups[0].is_listed:
                yield from self._against_first(1 << number, who)

    @cached_property
    def _odd(self) -> list[tuple[str, dict[Facts, int]]]:
        """The names that are not of the same facts in all groups that are listed."""
        every = sum(1 << i for i, group in enumerate(self.groups) if group.is_listed)
        return [(name, bits) for name, bits in self._bits.items() if every not in bits.values()]

    def _against_first(self, bit: int, who: str) -> Iterator[str]:
        lacking: list[str] = []
        besides: list[str] = []
        other = 0
        for name, bits in self._odd:
            here, first = (next((facts for facts, of in bits.items() if of & one), None) for one in (bit, 1))
            if here is first:
                continue
            if here is None or first is None:
                (lacking if here is None else besides).append(name)
                continue
            other += 1
            if other <= _MAX_NAMED:
                yield f"{who}: {cut(name, MAX_SHOWN)} is {unlike(here, first)}"
        if other > _MAX_NAMED:
            yield f"{who}: {other - _MAX_NAMED:,} more are not as on the others"
        are = who.startswith("ranks")
        for names, verb, end in (
            (lacking, "lack" if are else "lacks", ""),
            (besides, "have" if are else "has", " besides"),
        ):
            if names:
                more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
                yield f"{who} {verb} {', '.join(cut(name, MAX_SHOWN) for name in names[:_MAX_NAMED])}{more}{end}"

    def __repr__(self) -> str:
        said = "; ".join([self.told, *(cut(one, MAX_TOLD) for one in islice(self.differences(), _MAX_NAMED))])
        return f"<RankWeights of {cut(self.expression, MAX_SHOWN)}, {said}>"


def weights_on(asker: Asker, expression: str) -> RankWeights:
    """Return the weights of all ranks: each tells what tells its facts, and one of each kind lists them."""
    asking = Asking(asker)
    asking.ask_all("facts", expression, check=_mark)
    told: dict[Any, Told] = {}
    holders: dict[bytes, list[Any]] = {}
    rows: dict[bytes, dict[str, Facts]] = {}
    num_rows = 0
    for id, (question, *_), one in asking:
        if question == "facts":
            told[id] = one
        digest = told[id].found.digest if not told[id].said else b""
        if question == "listing" and not one.said:
            rows[digest] = one.found
        elif question == "listing":
            # Another one of the same kind tells the same.
            holders[digest].remove(id)
            for other in holders[digest][:1]:
                asking.ask(other, "listing", expression, check=_listing)
        elif not one.said:
            same = holders.setdefault(digest, [])
            same.append(id)
            if len(same) == 1 and num_rows + one.found.num_weights <= _MAX_ROWS:
                num_rows += one.found.num_weights
                asking.ask(id, "listing", expression, check=_listing)
    return RankWeights(asker, expression, Roll(asker, asking.ids, told), rows)


def _mark(found: Any) -> _Mark:
    digest, *numbers = found
    if type(digest) is not bytes:
        raise TypeError("no digest")
    return _Mark(digest, *map(whole, numbers))


def _listing(found: Any) -> dict[str, Facts]:
    return listed(unpacked(found))

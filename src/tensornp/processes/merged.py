"""Merge the answers of all ranks: weights by groups of ranks, statistics, and drift."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, number_ranges
from tensornp.core.values.stats.record import ALL, FIGURES, PARTIAL, TensorStats, alarm_text, sum_of
from tensornp.errors import NoSuchWeightError
from tensornp.models.names.quoted import MAX_INSIDE, MAX_SHOWN, closest, cut, shown_name
from tensornp.processes.answering import Facts

_MAX_RANKS = 12
"""Runs of ranks that a sentence names."""
_MAX_NBYTES, _MAX_DRIFT_NBYTES = 2**36, 2**26
"""Bytes of a weight that are hashed: for its statistics, of which only what is expanded has more, and for drift."""
_Found = TypeVar("_Found")


class Row(NamedTuple):
    """The answer of one rank on one weight."""

    facts: Facts
    box: Any
    digest: bytes | None
    stats: TensorStats | None


@dataclass
class Answers:
    """The answers to one question by rank, and the reasons of silent processes by id."""

    num_ranks: int = 0
    found: dict[Any, Any] = field(default_factory=dict)
    answered: tuple[Any, ...] = ()
    silent: dict[Any, str] = field(default_factory=dict)

    @property
    def count_text(self) -> str:
        """How many have answered: "32 ranks", "31 of 32 ranks"."""
        num = len(self.found)
        return counted(num, "rank") if num == self.num_ranks else f"{num:,} of {counted(self.num_ranks, 'rank')}"

    def rows(self) -> Iterator[tuple[Any, str, Row]]:
        """Yield each rank with each of its weights."""
        for rank, rows in self.found.items():
            for name, facts, box, digest, figures in rows:
                stats = TensorStats(**dict(zip(FIGURES, figures, strict=True))) if figures else None
                yield rank, name, Row(Facts(*facts), box, digest, stats)


def ranks_text(ranks: Iterable[Any]) -> str:
    """Return ranks in words: "rank 7", "ranks 0..3, 9"."""
    every = list(ranks)
    is_numbered = all(type(one) is int for one in every)
    names = list(number_ranges(sorted(every))) if is_numbered else [cut(str(one), MAX_INSIDE) for one in every]
    more = f" and {len(names) - _MAX_RANKS:,} more" if len(names) > _MAX_RANKS else ""
    return f"rank{'s' * (len(every) != 1)} {', '.join(names[:_MAX_RANKS])}{more}"


class OnRanks:
    """One weight: its `Facts` with the ranks of each, most ranks first; and the ranks without it."""

    def __init__(self, name: str, facts: Mapping[Any, Facts], every: tuple[Any, ...]) -> None:
        self.name, self.ranks = name, tuple(facts)
        self.lacking = tuple(rank for rank in every if rank not in facts)
        self.variants = [
            (one, tuple(rank for rank, its in facts.items() if its == one))
            for one, _ in Counter(facts.values()).most_common()
        ]
        self.facts = self.variants[0][0]

    @property
    def note(self) -> str:
        """How ranks differ: "not on rank 7", "on ranks 2..3", "rank 4 has dtype float16 instead of float32"."""
        where = ""
        if self.lacking:
            is_usual = len(self.lacking) < len(self.ranks)
            where = f"not on {ranks_text(self.lacking)}" if is_usual else f"on {ranks_text(self.ranks)}"
        others = (f"{ranks_text(ranks)} has {facts.unlike(self.facts)}" for facts, ranks in self.variants[1:])
        return "; ".join(filter(None, (where, *others)))


class _ByName(Mapping[str, _Found]):
    """A mapping by the names of weights, and the ids of answering and silent processes."""

    told: str
    """A summary in a sentence."""

    def __init__(self, answers: Answers, expression: str, found: dict[str, _Found]) -> None:
        self.expression, self.answered, self.silent = expression, answers.answered, answers.silent
        self._found = found

    def __getitem__(self, name: str) -> _Found:
        if name in self._found:
            return self._found[name]
        raise NoSuchWeightError(f"there is nothing of {shown_name(str(name))}{closest(str(name), self)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {cut(self.expression, MAX_SHOWN)}, {self.told}>"

    _mime_, _repr_html_ = mime_of, html_of


class RankWeights(_ByName[OnRanks]):
    """The weights of all ranks; a mapping from name to `OnRanks`.

    Attributes
    ----------
    expression : str
        The expression that was looked up on each rank.
    answered : tuple
        Ids of the processes that answered.
    silent : dict
        Why others have not answered, by id.
    """

    def __init__(self, ask: Callable[..., Answers], expression: str) -> None:
        answers, self._ask = ask(expression), ask
        facts: dict[str, dict[Any, Facts]] = {}
        for rank, name, row in answers.rows():
            facts.setdefault(name, {})[rank] = row.facts
        ranks = tuple(answers.found)
        super().__init__(answers, expression, {name: OnRanks(name, its, ranks) for name, its in facts.items()})
        num, tensors = len(self.differences()), counted(len(self), "tensor")
        same = f": the same {tensors}" if self.answered else ""
        self.told = answers.count_text + (f": {tensors}, {num:,} not the same on all" if num else same)

    def stats(self, name: str) -> RankStats:
        """Return the statistics of one weight on all ranks; replicas count once."""
        return stats_on(self._ask, self.expression, self[name].name)

    def drift(self) -> Drift:
        """Return the replicas of sharded weights, and the plain tensors, that differ; large ones are sampled."""
        return Drift(self._ask(self.expression, "", _MAX_DRIFT_NBYTES), self.expression)

    def differences(self) -> dict[str, str]:
        """Return the weights that are not the same on all ranks, each with how they differ."""
        return {name: one.note for name, one in self.items() if one.note}


@dataclass(frozen=True, eq=False, repr=False)
class RankStats(TensorStats):
    """Statistics of all ranks: elements that several hold count once.

    Attributes
    ----------
    name : str
    facts : Facts or None
        The facts on most ranks; None if no rank answered.
    nonfinite : dict
        NaN and infinities of each rank that has some: ``{2: "1 NaN"}``.
    differing : tuple
        The ranks whose bits, shape or dtype differ from those of most ranks; they are left out.
    answered, silent
        As of `RankWeights`.
    """

    name: str = field(default="", compare=False)
    facts: Facts | None = field(default=None, compare=False)
    nonfinite: dict[Any, str] = field(default_factory=dict, compare=False)
    differing: tuple[Any, ...] = field(default=(), compare=False)
    answered: tuple[Any, ...] = field(default=(), compare=False)
    silent: dict[Any, str] = field(default_factory=dict, compare=False)


def stats_on(ask: Callable[..., Answers], expression: str, name: str) -> RankStats:
    """Return the statistics of a weight on all ranks."""
    answers = ask(expression, name, _MAX_NBYTES)
    parts = {rank: row for rank, _, row in answers.rows()}
    forms = {rank: (part.facts.shape, part.facts.dtype, part.facts.layout) for rank, part in parts.items()}
    usual = next((form for form, _ in Counter(forms.values()).most_common(1)), None)
    same = {rank: part for rank, part in parts.items() if forms[rank] == usual}
    facts = next((part.facts for part in same.values()), None)
    groups = _replicas((rank, name, part) for rank, part in same.items()).values()
    differing = [rank for rank in parts if rank not in same]
    differing += [rank for _, *others in groups for ranks in others for rank in ranks]
    owned = [(part, part.stats) for (first, *_), *_ in groups if (part := same[first]).stats is not None]
    scope = _scope(facts, owned) + (f", without {ranks_text(differing)}" if differing else "")
    scope += f", of {answers.count_text}" if len(parts) < answers.num_ranks else ""
    base = sum_of(stats for _, stats in owned)
    own = {one.name: getattr(base, one.name) for one in fields(base)} | {"scope": scope}
    nonfinite = {rank: text for rank, part in same.items() if (text := alarm_text(part.stats))}
    return RankStats(
        **own, name=name, facts=facts, nonfinite=nonfinite, differing=tuple(differing), answered=answers.answered,
        silent=answers.silent,
    )  # fmt: skip


def _replicas(rows: Iterable[tuple[Any, str, Row]]) -> dict[tuple[str, Any, Any], list[list[Any]]]:
    """Return the groups of ranks with equal bits, the largest first, for each name, layout and box.

    Without a known box, nothing tells which ranks hold replicas.
    """
    found: dict[Any, dict[Any, list[Any]]] = {}
    for rank, name, row in rows:
        key = name, row.facts.layout, row.box if row.box is not None else rank
        bits = row.facts.dtype, row.facts.shape, row.digest
        found.setdefault(key, {}).setdefault(bits, []).append(rank)
    return {key: sorted(groups.values(), key=lambda ranks: -len(ranks)) for key, groups in found.items()}


def _scope(facts: Facts | None, owned: list[tuple[Row, TensorStats]]) -> str:
    """Return whether all elements were read, by the boxes, or by the count for unknown ones."""
    if facts is None:
        return "nothing"
    count = sum(stats.count for _, stats in owned)
    numel = math.prod(facts.shape) if facts.shape is not None and -1 not in facts.shape else count
    covered = sum(math.prod(part.box[1]) if part.box else stats.count for part, stats in owned)
    is_whole = covered >= numel or any(part.box == () for part, _ in owned)
    return ALL if is_whole else f"{PARTIAL}: {count:,} of {counted(numel, 'element')}"


class Drift(_ByName[str]):
    """Weights that differ between ranks: by name, the ranks that differ from most.

    Weights whose bits a rank cannot read are not compared.

    Attributes
    ----------
    num_compared : int
        Weights with the same part on several ranks.
    """

    def __init__(self, answers: Answers, expression: str) -> None:
        rows = [one for one in answers.rows() if one[2].digest is not None]
        differing: dict[str, list[Any]] = {}
        for (name, *_), (first, *others) in _replicas(rows).items():
            if others or len(first) > 1:
                differing.setdefault(name, []).extend(rank for ranks in others for rank in ranks)
        self.num_compared = len(differing)
        texts = {name: f"differs on {ranks_text(some)}" for name, some in differing.items() if some}
        super().__init__(answers, expression, texts)
        num = f"{len(self):,} {'differs' if len(self) == 1 else 'differ'}" if self else "none differs"
        whole = f"of {counted(self.num_compared, 'tensor')} that several hold, {num}"
        self.told = f"{answers.count_text}: {whole if self.num_compared else 'no tensor that several hold'}"

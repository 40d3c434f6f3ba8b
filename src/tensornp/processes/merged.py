"""Merge the answers of all ranks: weights by groups of ranks, statistics, and drift."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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
    figures: tuple[Any, ...]


class Answers(NamedTuple):
    """The answers to one question by rank, and the reasons of silent processes by id."""

    num_ranks: int
    found: dict[Any, Any]
    answered: tuple[Any, ...]
    silent: dict[Any, str]

    @property
    def count_text(self) -> str:
        """How many have answered: "32 ranks", "31 of 32 ranks"."""
        num = len(self.found)
        return counted(num, "rank") if num == self.num_ranks else f"{num:,} of {counted(self.num_ranks, 'rank')}"

    def weights(self) -> dict[str, dict[Any, Row]]:
        """Return the rows of each weight by rank."""
        weights: dict[str, dict[Any, Row]] = {}
        for rank, rows in self.found.items():
            for name, facts, *rest in rows:
                weights.setdefault(name, {})[rank] = Row(Facts(*facts), *rest)
        return weights


def ranks_text(ranks: Iterable[Any]) -> str:
    """Return ranks in words: "rank 7", "ranks 0..3, 9"."""
    every = list(ranks)
    is_numbered = all(type(one) is int for one in every)
    names = list(number_ranges(sorted(every))) if is_numbered else [cut(str(one), MAX_INSIDE) for one in every]
    more = f" and {len(names) - _MAX_RANKS:,} more" if len(names) > _MAX_RANKS else ""
    return f"rank{'s' * (len(every) != 1)} {', '.join(names[:_MAX_RANKS])}{more}"


def _most_first(values: Mapping[Any, _Found]) -> list[tuple[_Found, tuple[Any, ...]]]:
    """Return each value with its ranks, the one of most ranks first."""
    ranks: dict[_Found, tuple[Any, ...]] = {}
    for rank, value in values.items():
        ranks[value] = (*ranks.get(value, ()), rank)
    return sorted(ranks.items(), key=lambda one: -len(one[1]))


class OnRanks:
    """One weight: its `Facts` with the ranks of each, most ranks first; and the ranks without it."""

    def __init__(self, name: str, rows: Mapping[Any, Row], every: Iterable[Any]) -> None:
        self.name, self.ranks = name, tuple(rows)
        self.lacking = tuple(rank for rank in every if rank not in rows)
        self.variants = _most_first({rank: row.facts for rank, row in rows.items()})
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
    """A mapping by the names of weights; `told` is a summary in a sentence."""

    def __init__(self, answers: Answers, expression: str, found: dict[str, _Found], told: str) -> None:
        self.expression, self.answered, self.silent = expression, answers.answered, answers.silent
        self._found, self.told = found, answers.count_text + told

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

    `expression` was looked up on each rank. `answered` has the ids of the processes that answered, and `silent` tells
    why others have not, by id.
    """

    def __init__(self, ask: Callable[..., Answers], expression: str) -> None:
        answers, self._ask = ask(expression), ask
        found = {name: OnRanks(name, rows, answers.found) for name, rows in answers.weights().items()}
        num, tensors = sum(bool(one.note) for one in found.values()), counted(len(found), "tensor")
        same = f": the same {tensors}" if answers.found else ""
        super().__init__(answers, expression, found, f": {tensors}, {num:,} not the same on all" if num else same)

    def stats(self, name: str) -> RankStats:
        """Return the statistics of one weight on all ranks; replicas count once."""
        return stats_on(self._ask, self.expression, self[name].name)

    def drift(self) -> Drift:
        """Return the replicas of sharded weights, and the plain tensors, that differ; large ones are sampled."""
        return Drift(self._ask(self.expression, "", _MAX_DRIFT_NBYTES), self.expression)

    def differences(self) -> dict[str, str]:
        """Return the weights that are not the same on all ranks, each with how they differ."""
        return {name: one.note for name, one in self.items() if one.note}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankStats(TensorStats):
    """Statistics of all ranks: elements that several hold count once.

    `facts` are those of most ranks, None if no rank answered. `nonfinite` tells NaN and infinities of each rank that
    has some: ``{2: "1 NaN"}``. Ranks whose bits, shape, dtype or layout differ from those of most ranks are left out,
    and are `differing`. `answered` and `silent` are those of `RankWeights`.
    """

    name: str
    facts: Facts | None
    nonfinite: dict[Any, str]
    differing: tuple[Any, ...]
    answered: tuple[Any, ...]
    silent: dict[Any, str]


def stats_on(ask: Callable[..., Answers], expression: str, name: str) -> RankStats:
    """Return the statistics of a weight on all ranks."""
    answers = ask(expression, name, _MAX_NBYTES)
    rows = answers.weights().get(name, {})
    parts, differing = _replicas(rows)
    stats = {rank: TensorStats(**dict(zip(FIGURES, row.figures, strict=True))) for rank, row in rows.items()}
    base = sum_of(stats[rank] for rank, *_ in parts)
    facts, scope = None, "nothing"
    if parts:
        first = rows[parts[0][0]]
        facts = first.facts
        numel = math.prod(facts.shape or ()) if first.box != () else base.count
        scope = ALL if base.count >= numel else f"{PARTIAL}: {base.count:,} of {counted(numel, 'element')}"
    scope += f", without {ranks_text(differing)}" if differing else ""
    scope += f", of {answers.count_text}" if len(rows) < answers.num_ranks else ""
    nonfinite = {rank: text for rank, one in stats.items() if (text := alarm_text(one))}
    return RankStats(
        **{figure: getattr(base, figure) for figure in FIGURES}, scope=scope, name=name, facts=facts,
        nonfinite=nonfinite, differing=differing, answered=answers.answered, silent=answers.silent,
    )  # fmt: skip


def _replicas(rows: Mapping[Any, Row]) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    """Return the ranks that agree on each part of a weight, and those that differ from most.

    Without a known box, nothing tells which ranks hold replicas.
    """
    forms = {rank: (row.facts.shape, row.facts.dtype, row.facts.layout) for rank, row in rows.items()}
    usual = _most_first(forms)[0][1] if rows else ()
    boxes = {rank: rank if rows[rank].box is None else rows[rank].box for rank in usual}
    parts = [_most_first({rank: rows[rank].digest for rank in ranks})[0][1] for _, ranks in _most_first(boxes)]
    same = {rank for ranks in parts for rank in ranks}
    return parts, tuple(rank for rank in rows if rank not in same)


class Drift(_ByName[str]):
    """Weights that differ between ranks: by name, the ranks that differ from most.

    Weights whose bits a rank cannot read are not compared; `num_compared` have the same part on several ranks.
    """

    def __init__(self, answers: Answers, expression: str) -> None:
        self.num_compared, texts = 0, {}
        for name, rows in answers.weights().items():
            read = {rank: row for rank, row in rows.items() if row.digest is not None}
            parts, differing = _replicas(read)
            self.num_compared += len(read) > len(parts)
            if differing:
                texts[name] = f"differs on {ranks_text(differing)}"
        num = f"{len(texts):,}" if texts else "none"
        told = f"of {counted(self.num_compared, 'tensor')} that several hold, {num} differ{'s' * (len(texts) < 2)}"
        told = told if self.num_compared else "no tensor that several hold"
        super().__init__(answers, expression, texts, f": {told}")

"""Merge the answers of all ranks: weights by groups of ranks, statistics, and drift."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted
from tensornp.core.values.stats.record import ALL, PARTIAL, TensorStats, sum_of
from tensornp.errors import NoSuchWeightError
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, closest, cut, shown_name
from tensornp.processes.answering import Facts
from tensornp.processes.asking import Answers, Asker, Row, ranks_text

_MAX_NAMED = 3
_MAX_DRIFT_NBYTES = 2**26
"""Bytes of a weight that are all compared."""
_Found = TypeVar("_Found")


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
        others = [f"{ranks_text(ranks)} has {facts.unlike(self.facts)}" for facts, ranks in self.variants[1:]]
        more = f"{len(others) - _MAX_NAMED:,} more are different" if len(others) > _MAX_NAMED else ""
        return "; ".join(filter(None, (where, *others[:_MAX_NAMED], more)))


class _ByName(Mapping[str, _Found]):
    """A mapping by the names of weights, and the ids of answering and silent processes."""

    def __init__(self, answers: Answers, expression: str, found: dict[str, _Found]) -> None:
        self.expression, self.answered, self.silent = expression, answers.answered, answers.silent
        self._count_text, self._found = answers.count_text, found

    def __getitem__(self, name: str) -> _Found:
        if name in self._found:
            return self._found[name]
        raise NoSuchWeightError(f"there is nothing of {shown_name(str(name))}{closest(str(name), self._found)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

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

    def __init__(self, asker: Asker, expression: str) -> None:
        answers, self._asker = asker.ask(expression), asker
        facts: dict[str, dict[Any, Facts]] = {}
        for rank, name, row in answers.rows():
            facts.setdefault(name, {})[rank] = row.facts
        every = tuple(answers.found)
        super().__init__(answers, expression, {name: OnRanks(name, its, every) for name, its in facts.items()})

    def stats(self, name: str) -> RankStats:
        """Return the statistics of one weight on all ranks; replicas count once."""
        return stats_on(self._asker, self.expression, self[name].name)

    def drift(self) -> Drift:
        """Return the replicas of sharded weights, and the plain tensors, that differ; large ones are sampled."""
        return Drift(self._asker.ask(self.expression, "", _MAX_DRIFT_NBYTES), self.expression)

    def differences(self) -> dict[str, str]:
        """Return the weights that are not the same on all ranks, each with how they differ."""
        return {name: one.note for name, one in self.items() if one.note}

    @property
    def told(self) -> str:
        """A summary of the ranks: "32 ranks: the same 1,200 tensors"."""
        if not self.answered:
            return self._count_text
        if num := len(self.differences()):
            return f"{self._count_text}: {counted(len(self), 'tensor')}, {num:,} not the same on all"
        return f"{self._count_text}: the same {counted(len(self), 'tensor')}"

    def __repr__(self) -> str:
        notes = (cut(f"{name}: {note}", MAX_TOLD) for name, note in islice(self.differences().items(), _MAX_NAMED))
        return f"<RankWeights of {cut(self.expression, MAX_SHOWN)}, {'; '.join([self.told, *notes])}>"


class Place(NamedTuple):
    """NaN ("nan") or infinities ("inf") of a rank, with indices in the whole tensor."""

    rank: Any
    what: str
    num: int
    indices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False, repr=False)
class RankStats(TensorStats):
    """Statistics of all ranks: elements that several hold count once.

    Attributes
    ----------
    name : str
    facts : Facts or None
        The facts on most ranks; None if no rank answered.
    places : tuple of Place
        Where NaN and infinities are on each rank.
    differing : tuple
        The ranks whose bits, shape or dtype differ from those of most ranks; they are left out.
    answered, silent
        As of `RankWeights`.
    """

    name: str = field(default="", compare=False)
    facts: Facts | None = field(default=None, compare=False)
    places: tuple[Place, ...] = field(default=(), compare=False)
    differing: tuple[Any, ...] = field(default=(), compare=False)
    answered: tuple[Any, ...] = field(default=(), compare=False)
    silent: dict[Any, str] = field(default_factory=dict, compare=False)


_MAX_NBYTES = 2**36
"""Bytes that are hashed as a whole: only what is expanded has more."""


def stats_on(asker: Asker, expression: str, name: str) -> RankStats:
    """Return the statistics of a weight on all ranks."""
    answers = asker.ask(expression, name, _MAX_NBYTES)
    parts = {rank: row for rank, _, row in answers.rows()}
    forms = {rank: (part.facts.shape, part.facts.dtype, part.facts.layout) for rank, part in parts.items()}
    usual = next((form for form, _ in Counter(forms.values()).most_common(1)), None)
    same = {rank: part for rank, part in parts.items() if forms[rank] == usual}
    facts = next((part.facts for part in same.values()), None)
    differing = [rank for rank in parts if rank not in same]
    owned = []
    for variants in _replicas((rank, name, part) for rank, part in same.items() if part.figures).values():
        first, *others = sorted(variants.values(), key=len, reverse=True)
        owned.append(same[first[0]])
        differing += [rank for ranks in others for rank in ranks]
    scope = _scope(facts, owned)
    if differing:
        scope += f", without {ranks_text(differing)}"
    if len(parts) < answers.num_ranks:
        scope += f", of {answers.count_text}"
    base = replace(sum_of(part.figures[0] for part in owned), scope=scope)
    places = tuple(Place(rank, *place) for rank, part in same.items() for place in part.places)
    own = {one.name: getattr(base, one.name) for one in fields(base)}
    return RankStats(
        **own, name=name, facts=facts, places=places, differing=tuple(differing), answered=answers.answered,
        silent=answers.silent,
    )  # fmt: skip


def _replicas(rows: Iterable[tuple[Any, str, Row]]) -> dict[tuple[str, Any, Any], dict[tuple[str, Any], list[Any]]]:
    """Return the ranks by form and digest, for each name, layout and box.

    Without a known box, nothing tells which ranks hold replicas.
    """
    found: dict[Any, dict[Any, list[Any]]] = {}
    for rank, name, row in rows:
        key = name, row.facts.layout, row.box if row.box is not None else rank
        form = f"{row.facts.dtype} of shape {row.facts.shape}"
        found.setdefault(key, {}).setdefault((form, row.digest), []).append(rank)
    return found


def _scope(facts: Facts | None, owned: list[Row]) -> str:
    """Return whether all elements were read, by the boxes, or by the count for unknown ones."""
    if facts is None:
        return "nothing"
    count = sum(part.figures[0].count for part in owned)
    numel = math.prod(facts.shape) if facts.shape is not None and -1 not in facts.shape else count
    covered = sum(math.prod(part.box[1]) if part.box else part.figures[0].count for part in owned)
    is_whole = covered >= numel or any(part.box == () for part in owned)
    return ALL if is_whole else f"{PARTIAL}: {count:,} of {counted(numel, 'element')}"


class Drift(_ByName[str]):
    """Weights that differ between ranks: by name, the ranks that differ from most.

    Attributes
    ----------
    num_compared : int
        Weights with the same part on several ranks.
    not_compared : tuple of str
        Weights whose bits some rank cannot read.
    """

    def __init__(self, answers: Answers, expression: str) -> None:
        every = _replicas(one for one in answers.rows() if one[2].digest is not None)
        unread = dict.fromkeys(name for (name, *_), found in every.items() if not all(digest for _, digest in found))
        self.not_compared = tuple(unread)
        compared = {key: one for key, one in every.items() if key[0] not in unread and sum(map(len, one.values())) > 1}
        self.num_compared = len({name for name, *_ in compared})
        texts = {name: _drift_text(found) for (name, *_), found in compared.items() if len(found) > 1}
        super().__init__(answers, expression, texts)

    @property
    def told(self) -> str:
        """How many weights differ, on how many ranks."""
        if not self.num_compared:
            return f"{self._count_text}: no tensor that several hold"
        num = f"{len(self):,} {'differs' if len(self) == 1 else 'differ'}" if self else "none differs"
        return f"{self._count_text}: of {counted(self.num_compared, 'tensor')} that several hold, {num}"

    def __repr__(self) -> str:
        return f"<Drift of {self.expression}, {self.told}>"


def _drift_text(found: Mapping[tuple[str, Any], list[Any]]) -> str:
    """Return the ranks outside of the largest group, and the forms if these differ."""
    usual, *others = sorted(found, key=lambda one: -len(found[one]))
    forms = dict.fromkeys(form for form, _ in (*others, usual))
    form = f", {' and '.join(forms)}" if len(forms) > 1 else ""
    return f"differs on {ranks_text(rank for one in others for rank in found[one])}{form}"

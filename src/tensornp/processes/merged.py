"""Merge the answers of all ranks: weights by groups of ranks, statistics, and drift."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.shards import num_of
from tensornp.core.values.scopes import ALL, PARTIAL
from tensornp.core.values.stats.record import FIGURES, TensorStats, scoped, sum_of
from tensornp.errors import BadRequestError, NoSuchWeightError
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, closest, cut, shown_name
from tensornp.processes.asking import Answers, Asker, ranks_text

_MAX_NAMED = 3


class Facts(NamedTuple):
    """The facts of a weight that are equal on all ranks where all is well.

    `shape` and `nbytes` are those of the whole tensor, `device` is its kind, `layout` says how it is spread, such as
    "S(0), R on dp 4 × tp 8", and `tied_to` is the first of its other names.
    """

    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    nbytes: int
    requires_grad: bool | None
    device: str
    layout: str
    tied_to: str

    def unlike(self, other: Facts) -> str:
        """Return the facts that differ here, with their values on the other ranks."""
        names = [name for name in Facts._fields if getattr(self, name) != getattr(other, name)]
        names = [name for name in names if name != "nbytes" or len(names) == 1]
        mine, others = (", ".join(f"{name} {getattr(one, name)}" for name in names) for one in (self, other))
        return f"{mine} here, {others} on the others"


class RankGroup(NamedTuple):
    """Ranks that hold weights of the same facts; `nbytes` are those of each rank.

    `rows` are the facts by name, None if no rank has listed them in time.
    """

    ranks: tuple[Any, ...]
    num_weights: int
    parameters: int
    nbytes: tuple[int, ...]
    rows: Mapping[str, Facts] | None


@dataclass(frozen=True, slots=True)
class OnRanks:
    """One weight: its `Facts` with the ranks of each, most ranks first; and who lacks it."""

    name: str
    variants: tuple[tuple[Facts, tuple[Any, ...]], ...]
    lacking: tuple[Any, ...] = ()

    @property
    def facts(self) -> Facts:
        """The facts on most ranks."""
        return self.variants[0][0]

    @property
    def ranks(self) -> tuple[Any, ...]:
        """The ranks that have it."""
        return tuple(rank for _, ranks in self.variants for rank in ranks)


class RankWeights(Mapping[str, OnRanks]):
    """The weights of all ranks; a mapping from name to `OnRanks`.

    Attributes
    ----------
    expression : str
        The expression that was looked up on each rank.
    answered : tuple
        The ids of the processes that have answered.
    silent : dict
        By id, why a process has not, in a sentence.
    groups : tuple of RankGroup
        Ranks with the same facts, the largest group first.
    """

    def __init__(self, asker: Asker, expression: str, answers: Answers, groups: tuple[RankGroup, ...]) -> None:
        self._asker, self.expression, self._answers, self.groups = asker, expression, answers, groups
        self.answered, self.silent = answers.answered, answers.silent
        self._names: dict[str, list[RankGroup]] = {}
        for group in groups:
            for name in group.rows or ():
                self._names.setdefault(name, []).append(group)

    def __getitem__(self, name: str) -> OnRanks:
        """Return the facts of one weight; NoSuchWeightError where no rank has it."""
        if name not in self._names:
            raise NoSuchWeightError(f"no rank has {shown_name(str(name))}{closest(str(name), self._names)}")
        variants: dict[Facts, list[Any]] = {}
        for group in self._names[name]:
            assert group.rows is not None
            variants.setdefault(group.rows[name], []).extend(group.ranks)
        ordered = sorted(variants.items(), key=lambda one: -len(one[1]))
        without = (group for group in self.groups if group.rows is not None and name not in group.rows)
        lacking = tuple(rank for group in without for rank in group.ranks)
        return OnRanks(name, tuple((facts, tuple(ranks)) for facts, ranks in ordered), lacking)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def stats(self, name: str) -> RankStats:
        """Return the statistics of one weight on all ranks; replicas count once."""
        return stats_on(self._asker, self.expression, self[name].name)

    def drift(self, max_nbytes: int = 2**26) -> Drift:
        """Return which replicas of sharded weights, and which plain tensors, differ.

        Weights of more than `max_nbytes` are sampled.
        """
        if type(max_nbytes) is not int or max_nbytes < 0:
            raise BadRequestError("max_nbytes must be a number of bytes")
        return Drift(self._asker.ask("digests", self.expression, max_nbytes), self.expression)

    @property
    def agree(self) -> bool:
        """Whether one group has most of the ranks that answered, or most of its weights are in all groups."""
        if not self.groups:
            return False
        first = self.groups[0]
        return 2 * len(first.ranks) > len(self.answered) or 2 * len(self._common) > first.num_weights

    @cached_property
    def _common(self) -> frozenset[tuple[str, Facts]]:
        """The names and facts that all listed groups have."""
        rows = [frozenset(group.rows.items()) for group in self.groups if group.rows is not None]
        return frozenset.intersection(*rows) if rows else frozenset()

    @property
    def told(self) -> str:
        """Return a summary of the ranks: "32 ranks: the same 1,200 tensors"."""
        if len(self.groups) == 1:
            return f"{self._answers.told}: the same {counted(self.groups[0].num_weights, 'tensor')}"
        if self.agree:
            return f"{self._answers.told}: {counted(len(self._common), 'tensor')} in common"
        if self.groups:
            return (
                f"{self._answers.told}: {counted(len(self), 'tensor')} in all, in {len(self.groups):,} groups of ranks"
            )
        return f"0 of {counted(self._answers.num_ranks, 'rank')}"

    def differences(self) -> Iterator[str]:
        """Yield a sentence on each difference from the largest group."""
        usual = self.groups[0].rows if self.groups else None
        for group in self.groups:
            who = ranks_text(group.ranks)
            if group.rows is None or not self.agree:
                listed = "" if group.rows is not None else ", not listed"
                yield f"{who}: {counted(group.num_weights, 'tensor')}{listed}"
            elif usual is not None and group.rows is not usual:
                yield from _differences(who, group.rows, usual)

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        said = "; ".join([self.told, *(cut(one, MAX_TOLD) for one in islice(self.differences(), _MAX_NAMED))])
        return f"<RankWeights of {cut(self.expression, MAX_SHOWN)}, {said}>"


def _differences(who: str, rows: Mapping[str, Facts], usual: Mapping[str, Facts]) -> Iterator[str]:
    other = [name for name in rows if name in usual and rows[name] != usual[name]]
    for name in other[:_MAX_NAMED]:
        yield f"{who}: {cut(name, MAX_SHOWN)} has {rows[name].unlike(usual[name])}"
    if len(other) > _MAX_NAMED:
        yield f"{who}: {len(other) - _MAX_NAMED:,} more are different"
    lacking = [name for name in usual if name not in rows]
    besides = [name for name in rows if name not in usual]
    for names, what in ((lacking, "without"), (besides, "in addition")):
        if names:
            more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
            yield f"{who}: {what} {', '.join(cut(name, MAX_SHOWN) for name in names[:_MAX_NAMED])}{more}"


def weights_on(asker: Asker, expression: str) -> RankWeights:
    """Return the weights of all ranks; one rank for each digest lists them."""
    answers = asker.ask("summary", expression)
    alike: dict[bytes, list[Any]] = {}
    for rank, (digest, *_) in answers.found.items():
        alike.setdefault(digest, []).append(rank)
    listings = asker.ask("listing", expression, ids=[answers.id_of(ranks[0]) for ranks in alike.values()]).found
    groups = []
    for ranks in alike.values():
        _, num, parameters, _ = answers.found[ranks[0]]
        rows = {name: Facts(*facts) for name, *facts in listings[ranks[0]]} if ranks[0] in listings else None
        nbytes = tuple(answers.found[rank][-1] for rank in ranks)
        groups.append(RankGroup(tuple(ranks), num, parameters, nbytes, rows))
    groups.sort(key=lambda group: (-len(group.ranks), -group.num_weights))
    return RankWeights(asker, expression, answers, tuple(groups))


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
        The facts on most ranks; None if no rank has answered.
    places : tuple of Place
        Where NaN and infinities are on each rank.
    differing : tuple
        The ranks whose bits differ from those of most ranks with the same part.
    left_out : tuple of str
        Which ranks have another tensor of that name, in a sentence each.
    answered : tuple
    silent : dict
        As in `RankWeights`.
    """

    name: str = field(default="", compare=False)
    facts: Facts | None = field(default=None, compare=False)
    places: tuple[Place, ...] = field(default=(), compare=False)
    differing: tuple[Any, ...] = field(default=(), compare=False)
    left_out: tuple[str, ...] = field(default=(), compare=False)
    answered: tuple[Any, ...] = field(default=(), compare=False)
    silent: dict[Any, str] = field(default_factory=dict, compare=False)
    _silent_told: tuple[str, ...] = field(default=(), compare=False)


class _Part(NamedTuple):
    """The answer of one rank; complex numbers have three figures, the second and third for their parts."""

    facts: Facts
    box: Any
    figures: tuple[TensorStats, ...]
    digest: bytes
    places: tuple[Any, ...]


def stats_on(asker: Asker, expression: str, name: str) -> RankStats:
    """Return the statistics of a weight on all ranks."""
    answers = asker.ask("part", expression, name)
    parts = {rank: _part(*found) for rank, found in answers.found.items()}
    forms = {rank: (part.facts.shape, part.facts.dtype, part.facts.layout) for rank, part in parts.items()}
    usual = Counter(forms.values()).most_common(1)
    same = {rank: part for rank, part in parts.items() if forms[rank] == usual[0][0]}
    facts = next((part.facts for part in same.values()), None)
    left_out = tuple(
        f"{ranks_text([rank])} has another tensor, which is left out: {part.facts.unlike(facts)}"
        for rank, part in parts.items() if facts is not None and rank not in same
    )  # fmt: skip
    boxes: dict[Any, list[Any]] = {}
    for rank, part in same.items():
        if part.figures:
            boxes.setdefault(part.box if part.box is not None else rank, []).append(rank)
    owned, differing = [], []
    for ranks in boxes.values():
        digest = Counter(same[rank].digest for rank in ranks).most_common(1)[0][0]
        owned.append(next(same[rank] for rank in ranks if same[rank].digest == digest))
        differing += [rank for rank in ranks if same[rank].digest != digest]
    figures, *others = [sum_of(column) for column in zip(*(part.figures for part in owned), strict=False)] or [
        TensorStats(0)
    ]
    scope = _scope(facts, owned)
    if differing:
        scope += f", without {ranks_text(differing)}"
    if len(parts) < answers.num_ranks:
        scope += f", of {answers.told}"
    real, imag = others or (None, None)
    base = scoped(replace(figures, real=real, imag=imag), scope)
    return RankStats(
        **{one.name: getattr(base, one.name) for one in fields(base)}, name=name, facts=facts,
        places=tuple(Place(rank, *place) for rank, part in same.items() for place in part.places),
        differing=tuple(differing), left_out=left_out, answered=answers.answered, silent=answers.silent,
        _silent_told=tuple(answers.silent_told),
    )  # fmt: skip


def _part(facts: Any, box: Any, figures: Any, digest: bytes, places: Any) -> _Part:
    made = tuple(TensorStats(**dict(zip(FIGURES, one, strict=True))) for one in figures)
    return _Part(Facts(*facts), box, made, digest, places)


def _scope(facts: Facts | None, owned: list[_Part]) -> str:
    """Return whether all elements were read: by the boxes, and where these are not known by the count."""
    if facts is None:
        return "nothing"
    count = sum(part.figures[0].count for part in owned)
    numel = math.prod(facts.shape) if facts.shape is not None and -1 not in facts.shape else count
    covered = sum(math.prod(map(num_of, part.box)) if part.box else part.figures[0].count for part in owned)
    is_whole = covered >= numel or any(part.box == () for part in owned)
    return ALL if is_whole else f"{PARTIAL}: {count:,} of {counted(numel, 'element')}"


class Drift(Mapping[str, str]):
    """Weights that differ between ranks: by name, the ranks that differ from most.

    Attributes
    ----------
    num_compared : int
        Weights that several ranks hold the same part of.
    not_compared : tuple of str
        Weights whose bits some rank cannot read.
    answered : tuple
    silent : dict
        As in `RankWeights`.
    """

    def __init__(self, answers: Answers, expression: str) -> None:
        self._answers, self.expression = answers, expression
        self.answered, self.silent = answers.answered, answers.silent
        held: dict[Any, dict[Any, list[Any]]] = {}
        for rank, rows in answers.found.items():
            for name, layout, box, form, digest in rows:
                # Without a known box, nothing tells which ranks hold replicas.
                key = name, layout, box if box is not None else rank
                held.setdefault(key, {}).setdefault((form, digest), []).append(rank)
        unread = [key[0] for key, found in held.items() if not all(digest for _, digest in found)]
        self.not_compared = tuple(dict.fromkeys(unread))
        self._found: dict[str, str] = {}
        compared = set()
        for (name, *_), found in held.items():
            if sum(map(len, found.values())) < 2 or name in self.not_compared:
                continue
            compared.add(name)
            usual = max(found, key=lambda one: len(found[one]))
            others = {one: ranks for one, ranks in found.items() if one != usual}
            if others:
                who = ranks_text(rank for ranks in others.values() for rank in ranks)
                forms = dict.fromkeys([form for form, _ in (*others, usual)])
                form = f", {' and '.join(forms)}" if len(forms) > 1 else ""
                self._found[name] = f"differs on {who}{form}"
        self.num_compared = len(compared)

    def __getitem__(self, name: str) -> str:
        if name in self._found:
            return self._found[name]
        raise NoSuchWeightError(f"nothing differs in {shown_name(str(name))}{closest(str(name), self._found)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def told(self) -> str:
        """Return how many of how many weights differ, on how many ranks."""
        if not self.num_compared:
            return f"{self._answers.told}: no tensor that several hold"
        num = f"{len(self):,} {'differs' if len(self) == 1 else 'differ'}" if self else "none differs"
        compared = counted(self.num_compared, "tensor")
        return f"{self._answers.told}: of {compared} that several hold, {num}"

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        return f"<Drift of {self.expression}, {self.told}>"

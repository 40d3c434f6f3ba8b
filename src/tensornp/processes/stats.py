"""`RankStats`: the statistics of one weight on all ranks, of which each has read its own part."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.shards import num_of
from tensornp.core.values.locate import Location
from tensornp.core.values.scopes import ALL, PARTIAL
from tensornp.core.values.stats.record import FIGURES, TensorStats, scoped, sum_of
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.processes.asking import Asker, Asking, Told
from tensornp.processes.facts import Facts, listed, number, unlike, whole
from tensornp.processes.rolls import Roll, Silent, ranks_text
from tensornp.processes.shown import Shown

_MAX_ASKED = 16
"""Ranks that are asked where their NaN or infinities are."""


class Place(NamedTuple):
    """Where elements are that were looked for: the ranks that hold them, and their indices in the whole tensor."""

    ranks: tuple[Any, ...]
    location: Location


@dataclass(frozen=True, eq=False, repr=False)
class RankStats(Shown, TensorStats):
    """Statistics of all ranks: what several hold counts once.

    Attributes
    ----------
    name : str
    facts : Facts or None
        What is told of it on most ranks; None where no rank has told anything.
    places : tuple of Place
        Where NaN, infinities and the extremes are, and on which ranks.
    differing : tuple
        The ranks whose bits are not those of the most that hold the same part.
    left_out : tuple of str
        Which ranks have another tensor by that name, in a sentence each.
    answered : tuple
    silent : dict
        As of `RankWeights`.
    """

    name: str = field(default="", compare=False)
    facts: Facts | None = field(default=None, compare=False)
    places: tuple[Place, ...] = field(default=(), compare=False)
    differing: tuple[Any, ...] = field(default=(), compare=False)
    left_out: tuple[str, ...] = field(default=(), compare=False)
    answered: tuple[Any, ...] = field(default=(), compare=False)
    silent: Silent = field(default_factory=Silent, compare=False)


class _Part(NamedTuple):
    """What one rank holds: its box, the figures of that (of complex numbers, of both parts too), and its bits."""

    facts: Facts
    box: Any
    figures: tuple[TensorStats, ...]
    mark: bytes

    @property
    def form(self) -> tuple[Any, ...]:
        """What parts of one tensor have in common."""
        return self.facts.shape, self.facts.dtype, self.facts.layout


def stats_on(asker: Asker, expression: str, name: str) -> RankStats:
    """Return the statistics of a weight; those who hold what is sought are asked for its place at once."""
    asking = Asking(asker)
    asking.ask_all("part", expression, name, check=_part)
    told: dict[Any, Told] = {}
    places: dict[tuple[Any, str], Location] = {}
    sought = _Sought()
    for id, question, one in asking:
        if question[0] == "part":
            told[id] = one
            for what in sought.by(one.found) if not one.said else ():
                asking.ask(id, "places", expression, name, what, check=_location_of(what))
        elif not one.said:
            places[id, question[-1]] = one.found
    return _merged(Roll(asker, asking.ids, told), places, name)


class _Sought:
    """What is asked of each rank that answers: where its NaN are, and an extreme that is beyond all others so far."""

    def __init__(self) -> None:
        self._seen: set[Any] = set()
        self._low, self._high = math.inf, -math.inf
        self._left = {"nan": _MAX_ASKED, "inf": _MAX_ASKED}

    def by(self, part: _Part) -> Iterator[str]:
        """Yield what is sought in a part; of equal ones, once."""
        key = part.mark and (part.mark, part.box)
        if not part.figures or (key and key in self._seen):
            return
        self._seen.add(key)
        found = part.figures[0]
        for what, num in (("nan", found.nan), ("inf", found.posinf + found.neginf)):
            if num and self._left[what]:
                self._left[what] -= 1
                yield what
        if found.min is None or found.max is None or found.min == found.max:
            return
        if found.min < self._low:
            self._low = found.min
            yield "min"
        if found.max > self._high:
            self._high = found.max
            yield "max"


def _merged(roll: Roll, places: dict[tuple[Any, str], Location], name: str) -> RankStats:
    parts: dict[Any, _Part] = roll.found
    usual = Counter(part.form for part in parts.values()).most_common(1)
    same = {id: part for id, part in parts.items() if part.form == usual[0][0]}
    facts = next((part.facts for part in same.values()), None)
    left_out = tuple(
        f"{ranks_text([roll.rank_of(id)])} has another one, which is left out: {unlike(part.facts, facts)}"
        for id, part in parts.items() if facts is not None and id not in same
    )  # fmt: skip
    boxes: dict[Any, list[Any]] = {}
    for id, part in same.items():
        if part.figures:
            boxes.setdefault(part.box if part.box is not None else id, []).append(id)
    owners, differing = [], []
    for ids in boxes.values():
        mark = Counter(same[id].mark for id in ids).most_common(1)[0][0]
        owners.append(next(id for id in ids if same[id].mark == mark))
        differing += [id for id in ids if same[id].mark != mark]
    columns = zip(*(same[id].figures for id in owners), strict=False)
    figures, *others = [sum_of(column) for column in columns] or [TensorStats(0)]
    scope = _scope(facts, [same[id] for id in owners])
    if differing:
        # Of replicas that differ, those of which most are alike are told.
        alike = {id for ids in boxes.values() for id in ids}.difference(differing)
        scope += f", as on {ranks_text(roll.rank_of(id) for id in same if id in alike)}"
    if len(parts) < roll.num_ranks:
        scope += f", of {roll.told}"
    real, imag = others or (None, None)
    base = scoped(replace(figures, real=real, imag=imag), scope)
    holders = {id: _holding_the_same(same, id) for id, _ in places if id in same}
    found = [
        Place(tuple(map(roll.rank_of, holders[id])), location)
        for (id, what), location in places.items()
        if id in holders and (location.value is None or _is_of_all(location, base, holders[id], owners))
    ]
    return RankStats(
        **{one.name: getattr(base, one.name) for one in fields(base)}, name=name, facts=facts, places=tuple(found),
        differing=tuple(map(roll.rank_of, differing)), left_out=left_out, answered=roll.answered, silent=roll.silent,
    )  # fmt: skip


def _is_of_all(extreme: Location, base: TensorStats, holders: list[Any], owners: list[Any]) -> bool:
    """Return whether what is the extreme of one part is that of all, and counts."""
    return extreme.value == getattr(base, extreme.what) and not set(holders).isdisjoint(owners)


def _holding_the_same(parts: dict[Any, _Part], id: Any) -> list[Any]:
    own = parts[id]
    return [
        other
        for other, one in parts.items()
        if other == id or (own.mark and (one.mark, one.box) == (own.mark, own.box))
    ]


def _scope(facts: Facts | None, owned: list[_Part]) -> str:
    """Return whether all elements were read: by the boxes, and where these are not told by the count."""
    if facts is None:
        return "nothing"
    count = sum(part.figures[0].count for part in owned)
    numel = math.prod(facts.shape) if facts.shape is not None and -1 not in facts.shape else count
    covered = sum(math.prod(map(num_of, part.box)) if part.box else part.figures[0].count for part in owned)
    is_whole = covered >= numel or any(part.box == () for part in owned)
    return ALL if is_whole else f"{PARTIAL}: {count:,} of {counted(numel, 'element')}"


def _part(found: Any) -> _Part:
    facts, box, figures, mark = found
    if type(mark) is not bytes:
        raise TypeError("no mark")
    runs = None if box is None else tuple(tuple((whole(a), whole(b)) for a, b in dim) for dim in box)
    return _Part(listed([("", *facts)])[""], runs, tuple(map(_figures, figures)), mark)


def _figures(values: Any) -> TensorStats:
    numbers = [*map(whole, values[:5]), *map(number, values[5:])]
    figures: dict[str, Any] = dict(zip(FIGURES, numbers, strict=True))
    return TensorStats(**figures)


def _location_of(what: str) -> Callable[[Any], Location]:
    def made(found: Any) -> Location:
        count, indices, axes, value = found
        told = tuple(tuple(map(whole, index)) for index in indices)
        shown = tuple(cut(str(axis), MAX_SHOWN) for axis in axes)
        return Location(what, whole(count), told, shown, number(value), ALL)

    return made

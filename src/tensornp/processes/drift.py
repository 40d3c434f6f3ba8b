"""`Drift`: which weights differ between ranks that should have the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tensornp.core.lowlevel.spelled import spelled
from tensornp.core.lowlevel.units import counted
from tensornp.errors import BadRequestError, NoSuchWeightError
from tensornp.models.names.quoted import closest, shown_name
from tensornp.processes.asking import Asker, Asking, Told
from tensornp.processes.facts import unpacked, whole
from tensornp.processes.rolls import Roll, ranks_text
from tensornp.processes.shown import Shown

_MAX_ROWS = 2_000_000
"""Weights whose blocks are compared, of all ranks together."""


class Drift(Shown, Mapping[str, str]):
    """By the name of each weight that differs, on which ranks, and from which block of 1 MiB on.

    Attributes
    ----------
    num_compared : int
        Weights that several ranks hold the same part of.
    is_sampled : bool
        Whether of some only samples were read.
    not_compared : tuple of str
        What differs, and was not looked into, in a sentence each.
    answered : tuple
    silent : dict
        As of `RankWeights`.
    """

    def __init__(self, roll: Roll, expression: str, found: Mapping[str, str], num: int, left: tuple[str, ...]) -> None:
        self._roll, self.expression, self._found, self.num_compared = roll, expression, found, num
        self.answered, self.silent = roll.answered, roll.silent
        self.is_sampled = any(not mark.is_whole for marks in roll.found.values() for mark in marks)
        self.not_compared = left

    def __getitem__(self, name: str) -> str:
        if name in self._found:
            return self._found[name]
        near = closest(name, self._found) if isinstance(name, str) else ""
        raise NoSuchWeightError(f"nothing differs in {shown_name(str(name))}{near}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def told(self) -> str:
        """Return how many of how many weights differ, on how many ranks that was asked."""
        if not self.num_compared:
            return f"{self._roll.told}: no tensor that several hold"
        compared = f"{counted(self.num_compared, 'tensor')} that several hold{', sampled' if self.is_sampled else ''}"
        num = f"{len(self):,} {'differs' if len(self) == 1 else 'differ'}" if self else "none differs"
        return f"{self._roll.told}: of {compared}, {num}"

    @spelled
    def __repr__(self) -> str:
        return f"<Drift of {self.expression}, {self.told}>"


class _Mark(NamedTuple):
    """Of the weights of one kind and layout on a rank, what tells their names, their boxes and their bits."""

    own: str
    names: bytes
    boxes: bytes
    bits: bytes
    num: int
    is_whole: bool

    @property
    def key(self) -> tuple[str, bytes, bytes]:
        """What is equal on replicas."""
        return self.own, self.names, self.boxes

    def must_be_compared_with(self, other: _Mark) -> bool:
        """Return whether some weights of both may be replicas that differ."""
        return self.own == other.own and (
            self.names != other.names or (self.boxes == other.boxes and self.bits != other.bits)
        )


class _Blocks(NamedTuple):
    name: str
    box: str
    way: str
    one_in: int
    blocks: tuple[int, ...]


def drift_on(asker: Asker, expression: str, max_nbytes: int) -> Drift:
    """Return what differs: each rank tells what tells its bits, and where they differ, one of each kind all of them."""
    if type(max_nbytes) is not int or max_nbytes < 0:
        raise BadRequestError("max_nbytes is a number of bytes")
    asking = Asking(asker)
    asking.ask_all("marks", expression, max_nbytes, check=_marks)
    told: dict[Any, Told] = {}
    holders: dict[_Mark, Any] = {}
    odd: dict[_Mark, None] = {}
    blocks: dict[_Mark, list[_Blocks]] = {}
    num_rows = 0
    for id, (question, *details), one in asking:
        if question == "blocks" and not one.said:
            blocks[next(mark for mark in odd if holders[mark] == id and mark.own == details[-1])] = one.found
        if question == "blocks":
            continue
        told[id] = one
        for mark in one.found if not one.said else ():
            if mark in holders:
                continue
            unlike = [other for other in holders if other.must_be_compared_with(mark)]
            holders[mark] = id
            for other in [*unlike, mark] if unlike else []:
                num_rows += other.num * (other not in odd)
                if other not in odd and num_rows <= _MAX_ROWS:
                    asking.ask(holders[other], "blocks", expression, max_nbytes, other.own, check=_blocks)
                odd[other] = None
    return _drift(Roll(asker, asking.ids, told), expression, odd, blocks)


def _drift(roll: Roll, expression: str, odd: Iterable[_Mark], blocks: Mapping[_Mark, list[_Blocks]]) -> Drift:
    alike: dict[_Mark, list[Any]] = defaultdict(list)
    for id in roll.answered:
        for mark in roll.found[id]:
            alike[mark].append(roll.rank_of(id))
    held, num = Counter[Any](), {}
    for mark, ranks in alike.items():
        held[mark.key] += len(ranks)
        num[mark.key] = mark.num
    compared: dict[str, int] = {}
    for key, times in held.items():
        if times > 1:
            compared[key[0]] = max(compared.get(key[0], 0), num[key])
    left = tuple(
        f"{counted(mark.num, 'tensor')} on {ranks_text(alike[mark])}: which of them differ is not told"
        for mark in odd if mark in alike and mark not in blocks
    )  # fmt: skip
    # In the order of the ranks: of as many on both sides, the first have what is usual.
    found = {mark: blocks[mark] for mark in alike if mark in blocks}
    return Drift(roll, expression, dict(_differing(found, alike)), sum(compared.values()), left)


def _differing(blocks: Mapping[_Mark, list[_Blocks]], alike: Mapping[_Mark, list[Any]]) -> Iterator[tuple[str, str]]:
    """Yield the weights of which ranks hold the same box with other bits: those of the fewest ranks differ."""
    held: dict[tuple[str, str], dict[_Blocks, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for mark, every in blocks.items():
        for one in every:
            held[one.name, one.box][one] += alike[mark]
    for (name, _), found in held.items():
        if len(found) > 1:
            usual = max(found, key=lambda one: len(found[one]))
            others = [one for one in found if one != usual]
            ranks = ranks_text(rank for one in others for rank in found[one])
            yield name, f"differs on {ranks}{_first(usual, others)}"


def _first(usual: _Blocks, others: list[_Blocks]) -> str:
    """Return the first block in which one of them differs, where blocks can be compared."""
    if any((one.way, one.one_in, len(one.blocks)) != (usual.way, usual.one_in, len(usual.blocks)) for one in others):
        return ""
    pairs = enumerate(zip(usual.blocks, *(one.blocks for one in others), strict=True))
    first = next((i for i, some in pairs if len(set(some)) > 1), 0)
    return f", first in {'block' if usual.one_in == 1 else 'sample'} {first:,}"


def _marks(found: Any) -> tuple[_Mark, ...]:
    marks = tuple(_Mark(*one) for one in found)
    if any([type(field) for field in one] != [str, bytes, bytes, bytes, int, bool] for one in marks):
        raise TypeError("no marks")
    return marks


def _blocks(found: Any) -> list[_Blocks]:
    # A device's are signed.
    return [
        _Blocks(str(name), str(box), str(way), whole(one_in), tuple(whole(one, -(2**63)) for one in blocks))
        for name, box, way, one_in, blocks in unpacked(found)
    ]

"""`Drift`: which weights differ between ranks that should have the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted
from tensornp.errors import BadRequestError, NoSuchWeightError
from tensornp.models.names.quoted import MAX_INSIDE, MAX_SHOWN, MAX_TOLD, closest, cut, shown_name
from tensornp.processes.asking import Asker, Asking, Told
from tensornp.processes.facts import unpacked, whole
from tensornp.processes.rolls import Roll, ranks_text
from tensornp.processes.shown import Shown

_MAX_ROWS = 2_000_000
"""Weights whose blocks are compared, of all ranks together."""
_MAX_UNLIKE = 4
"""Shapes, or dtypes, that a sentence names."""


class Drift(Shown, Mapping[str, str]):
    """By the name of each weight that differs, on which ranks, and from which block of 1 MiB on.

    Attributes
    ----------
    num_compared : int
        Weights that several ranks hold the same part of.
    is_sampled : bool
        Whether of some only samples were read.
    not_compared : tuple of str
        What was not compared, in a sentence each.
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
            return f"{self._roll.told}: no tensor {'was compared' if self.not_compared else 'that several hold'}"
        compared = f"{counted(self.num_compared, 'tensor')} that several hold{', sampled' if self.is_sampled else ''}"
        num = f"{len(self):,} {'differs' if len(self) == 1 else 'differ'}" if self else "none differs"
        return f"{self._roll.told}: of {compared}, {num}{'; not all were compared' if self.not_compared else ''}"

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
    unread: str

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
    form: tuple[str, ...]
    one_in: int
    blocks: tuple[int, ...]

    def can_be_compared_with(self, other: _Blocks) -> bool:
        """Return whether they are alike only where their bits are."""
        return self.form != other.form or self.one_in == other.one_in


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
    unread: dict[str, list[Any]] = defaultdict(list)
    for id in roll.answered:
        for mark in roll.found[id]:
            alike[mark].append(roll.rank_of(id))
            if mark.unread:
                unread[mark.unread].append(roll.rank_of(id))
    # In the order of the ranks: of as many on both sides, the first have what is usual.
    held: dict[tuple[str, str], dict[_Blocks, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for mark, ranks in alike.items():
        for one in blocks.get(mark, ()):
            held[one.name, one.box][one] += ranks
    found, left = {}, []
    for name, said, is_compared in _differing(held):
        if is_compared:
            found[name] = said
        else:
            left.append(f"{cut(name, MAX_SHOWN)} {said}")
    left += [
        f"{names} on {ranks_text(ranks)}: not compared, as the bits cannot be read" for names, ranks in unread.items()
    ]
    left += [
        f"{counted(mark.num, 'tensor')} on {ranks_text(alike[mark])}: which of them differ is not told"
        for mark in odd if mark in alike and mark not in blocks
    ]  # fmt: skip
    return Drift(roll, expression, found, _num_compared(alike, blocks), tuple(left))


def _num_compared(alike: Mapping[_Mark, list[Any]], blocks: Mapping[_Mark, list[_Blocks]]) -> int:
    """Return how many weights several ranks hold the same box of: by name, where the names are told."""
    held, num, holders = Counter[Any](), {}, Counter[tuple[str, str, str]]()
    for mark, ranks in alike.items():
        held[mark.key] += len(ranks)
        num[mark.key] = mark.num
        for one in blocks.get(mark, ()):
            holders[mark.own, one.name, one.box] += len(ranks)
    compared = Counter(own for own, _ in {(own, name) for (own, name, _), times in holders.items() if times > 1})
    for key, times in held.items():
        if times > 1:
            compared[key[0]] = max(compared[key[0]], num[key])
    return sum(compared.values())


def _differing(held: Mapping[tuple[str, str], Mapping[_Blocks, list[Any]]]) -> Iterator[tuple[str, str, bool]]:
    """Yield of which weights ranks hold the same box otherwise, how, and whether that is compared.

    Those of the fewest ranks differ.
    """
    for (name, _), found in held.items():
        usual = max(found, key=lambda one: len(found[one]))
        for is_compared in (True, False):
            others = [one for one in found if one != usual and one.can_be_compared_with(usual) == is_compared]
            if not others:
                continue
            if is_compared:
                groups = ([one for one in others if (one.form == usual.form) == is_same] for is_same in (True, False))
                said = [f"on {_holding(found, group)}{_in_what(usual, group)}" for group in groups if group]
                yield name, f"differs {'; '.join(said)}", True
            else:
                ranks = _holding(found, others)
                yield name, f"on {ranks}: not compared, as another sample is read there", False


def _holding(found: Mapping[_Blocks, list[Any]], some: list[_Blocks]) -> str:
    return ranks_text(rank for one in some for rank in found[one])


def _in_what(usual: _Blocks, others: list[_Blocks]) -> str:
    """Return in which facts one of them differs, or in which block first, where blocks can be compared."""
    told = []
    for noun, values in zip(
        ("shape ", "", ""), zip(usual.form, *(one.form for one in others), strict=True), strict=True
    ):
        texts = list(dict.fromkeys(value.partition(" #")[0] for value in values))
        if len(texts) > 1:
            told.append(noun + " and ".join(cut(one, MAX_INSIDE) for one in texts[:_MAX_UNLIKE]))
        elif len(set(values)) > 1:
            told.append(f"other {texts[0]}")
    if told or any(len(one.blocks) != len(usual.blocks) for one in others):
        return "".join(f", {one}" for one in told)
    pairs = enumerate(zip(usual.blocks, *(one.blocks for one in others), strict=True))
    first = next((i for i, some in pairs if len(set(some)) > 1), 0)
    return f", first in {'block' if usual.one_in == 1 else 'sample'} {first:,}"


def _marks(found: Any) -> tuple[_Mark, ...]:
    marks = tuple(_Mark(*one) for one in found)
    if any([type(field) for field in one] != [str, bytes, bytes, bytes, int, bool, str] for one in marks):
        raise TypeError("no marks")
    return tuple(one._replace(num=whole(one.num), unread=cut(one.unread, MAX_TOLD)) for one in marks)


def _blocks(found: Any) -> list[_Blocks]:
    return [
        _Blocks(
            str(name),
            str(box),
            tuple(map(str, form)),
            whole(one_in),
            tuple(map(whole, blocks)),
        )
        for name, box, form, one_in, blocks in unpacked(found)
    ]

"""Which weights are one object under several names, or lie in the same bytes: the same elements, or some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.memory.extents import Extent as Bytes
from tensornp.core.memory.extents import relation_of
from tensornp.core.memory.footprint import Span, extents_of, spans_of
from tensornp.core.memory.relations import RELATIONS
from tensornp.models.entries.entry import Related, WeightEntry
from tensornp.models.entries.file import FileEntry
from tensornp.models.storage.totals import held_by, identity_of

_MAX_COMPARED = 20_000
"""Pairs of which it is told how they lie; what more there are shares storages all the same."""
_MAX_RELATED = 10
_MAX_TIED = 1000
"""Names of one thing up to which each is told the others."""


class _Held(NamedTuple):
    """One object by the first of its names, and where its storage lies; `number` counts them."""

    span: Span
    number: int
    entry: WeightEntry


@unnoticed
def relate(entries: Iterable[WeightEntry]) -> None:
    """Have the names of one object name each other in `tied_to`, and weights that share bytes in `related`."""
    # Nearly all have one name, and share nothing: no list is made for each of these.
    first: dict[object, WeightEntry] = {}
    tied: dict[int, list[WeightEntry]] = {}
    for entry in entries:
        one = first.setdefault(identity_of(entry), entry)
        if one is not entry:
            tied.setdefault(id(one), [one]).append(entry)
    for some in tied.values():
        if len(some) <= _MAX_TIED:
            for entry in some:
                entry.tied_to = tuple(other.name for other in some if other is not entry)
    read = (one for one in first.values() if one.nbytes and not one.problem)
    spans = ((_span_of(one), number, one) for number, one in enumerate(read))
    held = sorted(_Held(span, number, one) for span, number, one in spans if span is not None)
    left = _MAX_COMPARED
    for group in _meeting(held):
        left -= _relate_some(group, tied, left)


def _span_of(entry: WeightEntry) -> Span | None:
    """Return from where to where the storage goes, or what is read of a file; None of what has several, or none."""
    if isinstance(entry, FileEntry):
        extents = entry.extents if entry.meaning is not None else ()
        return (extents[0].path, extents[0].offset, extents[0].offset + extents[0].nbytes) if extents else None
    spans = spans_of(one) if (one := held_by(entry)) is not None else []
    return spans[0] if len(spans) == 1 else None


def _meeting(held: list[_Held]) -> Iterator[list[_Held]]:
    """Yield the groups of two or more whose spans meet."""
    group: list[_Held] = []
    place, end = "", 0
    for one in held:
        if group and (one.span[0] != place or one.span[1] >= end):
            if len(group) > 1:
                yield group
            group, end = [], 0
        place, end = one.span[0], max(end, one.span[2])
        group.append(one)
    if len(group) > 1:
        yield group


def _relate_some(group: list[_Held], tied: Mapping[int, list[WeightEntry]], most: int) -> int:
    """Have each of a group tell how it lies to the others; return how many pairs were compared, `most` at most."""
    lying = [(where, one.entry) for one in group if (where := _bytes_of(one.entry)) is not None]
    lying.sort(key=lambda pair: pair[0].bounds)
    num_compared = 0
    for i, (where, one) in enumerate(lying):
        # By numbers: to copy the rest for each takes minutes of 200,000 views of one storage.
        for at in range(i + 1, len(lying)):
            other_where, other = lying[at]
            if other_where.bounds[0] >= where.bounds[1] or num_compared >= most:
                break
            num_compared += 1
            relation = relation_of(where, other_where)
            if relation is not None:
                _note(tied.get(id(one), [one]), other, relation)
                _note(tied.get(id(other), [other]), one, relation)
    return num_compared


def _bytes_of(entry: WeightEntry) -> Bytes | None:
    """Return where the elements lie; None of what consists of several, or shares bytes until it is written to."""
    if isinstance(entry, FileEntry):
        (place,), selection = entry.extents, entry.select(...)
        assert entry.shape is not None
        # No address is 0, and an offset may be.
        at, meaning = place.offset + 1, repr(entry.meaning)
        return Bytes(place.path, at, entry.shape, selection.strides, selection.itemsize, meaning)
    held = held_by(entry)
    if is_tensor(held) and torch_private.is_lazily_copied(held):
        # The first write gives it bytes of its own.
        return None
    found = extents_of(held)
    return found[0] if len(found) == 1 else None


def _note(names: Iterable[WeightEntry], other: WeightEntry, relation: str) -> None:
    for entry in names:
        # The closest first: those of the same elements are one in the totals.
        related = sorted((*entry.related, Related(relation, other.name)), key=lambda one: RELATIONS.index(one.relation))
        entry.related = tuple(related[:_MAX_RELATED])

"""Which weights are one object under several names, or lie in the same bytes: the same elements, or some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.memory.extents import Extent as Bytes
from tensornp.core.memory.extents import relation_of
from tensornp.core.memory.footprint import Span, extents_of, spans_of
from tensornp.trees.entry import Related, WeightEntry
from tensornp.trees.file_entry import FileEntry
from tensornp.trees.totals import held_by, identity_of

_MAX_COMPARED = 20_000
"""Pairs of which it is told how they lie; what more there are shares storages all the same."""
_MAX_RELATED = 10
_MAX_TIED = 1000
"""Names of one thing up to which each is told the others."""


class _Held(NamedTuple):
    """One object under all its names, and where its storage lies."""

    span: Span
    entries: tuple[WeightEntry, ...]


@unnoticed
def relate(entries: Iterable[WeightEntry]) -> None:
    """Have the names of one object name each other in `tied_to`, and weights that share bytes in `related`."""
    by_object: dict[object, list[WeightEntry]] = {}
    for entry in entries:
        by_object.setdefault(identity_of(entry), []).append(entry)
    for some in by_object.values():
        if 1 < len(some) <= _MAX_TIED:
            for entry in some:
                entry.tied_to = tuple(other.name for other in some if other is not entry)
    read = (some for some in by_object.values() if some[0].nbytes and not some[0].problem)
    held = [_Held(span, tuple(some)) for some in read if (span := _span_of(some[0])) is not None]
    left = _MAX_COMPARED
    for group in _meeting(sorted(held, key=lambda one: one.span)):
        left -= _relate_some(group, left)


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


def _relate_some(group: list[_Held], most: int) -> int:
    """Have each of a group tell how it lies to the others; return how many pairs were compared, `most` at most."""
    lying = [(where, one) for one in group if (where := _bytes_of(one.entries[0])) is not None]
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
                _note(one, other, relation)
                _note(other, one, relation)
    return num_compared


def _bytes_of(entry: WeightEntry) -> Bytes | None:
    """Return where the elements lie; None of what consists of several."""
    if isinstance(entry, FileEntry):
        (place,), selection = entry.extents, entry.select(...)
        assert entry.shape is not None
        # No address is 0, and an offset may be.
        return Bytes(
            place.path, place.offset + 1, entry.shape, selection.strides, selection.itemsize, repr(entry.meaning)
        )
    found = extents_of(held_by(entry))
    return found[0] if len(found) == 1 else None


def _note(one: _Held, other: _Held, relation: str) -> None:
    for entry in one.entries:
        if len(entry.related) < _MAX_RELATED:
            entry.related = (*entry.related, Related(relation, other.entries[0].name))

"""Find weights that are one object or share bytes, and count each byte once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.memory.extents import RELATIONS, Extent, Piece, counted_once, nbytes_by_device, relation_of
from tensornp.models.entries.entry import COMPUTED, SAME, Related, WeightEntry
from tensornp.models.entries.source import NoSource

if TYPE_CHECKING:
    from tensornp.core.memory.extents import Span

_MAX_COMPARED = 20_000
"""Pairs of which it is told how they lie; what more there are shares storages all the same."""
_MAX_RELATED = 10
_MAX_TIED = 1000
"""Names of one thing up to which each is told the others."""


def relate(entries: Iterable[WeightEntry]) -> list[WeightEntry]:
    """Return the weights with `tied_to` (one object) and `related` (shared bytes)."""
    every = list(entries)
    if all(one._source.held is None for one in every):
        # Weights in files need no torch.
        return _related(every)
    from tensornp.core.lowlevel.modes import outside_modes

    return outside_modes(_related)(every)


def _related(every: list[WeightEntry]) -> list[WeightEntry]:
    # Nearly all have one name, and share nothing: no list is made for each of these.
    first: dict[object, int] = {}
    tied: dict[int, list[int]] = {}
    for number, entry in enumerate(every):
        one = first.setdefault(identity_of(entry), number)
        if one != number:
            tied.setdefault(one, [one]).append(number)
    told: dict[int, dict[str, Any]] = {}
    for some in tied.values():
        for number in some if len(some) <= _MAX_TIED else ():
            told[number] = {"tied_to": tuple(every[other].name for other in some if other != number)}
    read = (number for number in first.values() if every[number].nbytes and not every[number].problem)
    spans = ((_span_of(every[number]), number) for number in read)
    left, related = _MAX_COMPARED, dict[int, list[Related]]()
    for group in _meeting(sorted((span, number) for span, number in spans if span is not None)):
        left -= _relate_some(every, group, related, left)
    for number, others in related.items():
        # The closest first: those of the same elements are one in the totals.
        closest = sorted(others, key=lambda one: RELATIONS.index(one.relation))[:_MAX_RELATED]
        for name in tied.get(number, [number]):
            told.setdefault(name, {})["related"] = tuple(closest)
    return [entry._with_(**told[number]) if number in told else entry for number, entry in enumerate(every)]


def _span_of(entry: WeightEntry) -> Span | None:
    """Return the span in memory or in the file, None without exactly one."""
    lies, held = entry._source.lies, held_by(entry)
    if lies is not None:
        return (lies.device, *lies.bounds)
    if held is None:
        return None
    from tensornp.core.memory.footprint import spans_of

    spans = spans_of(held)
    return spans[0] if len(spans) == 1 else None


def _meeting(held: list[tuple[Span, int]]) -> Iterator[list[int]]:
    """Yield the groups of two or more with overlapping spans, by their numbers."""
    group: list[int] = []
    place, end = "", 0
    for (device, low, high), number in held:
        if group and (device != place or low >= end):
            if len(group) > 1:
                yield group
            group, end = [], 0
        place, end = device, max(end, high)
        group.append(number)
    if len(group) > 1:
        yield group


def _relate_some(every: list[WeightEntry], group: list[int], related: dict[int, list[Related]], most: int) -> int:
    """Note the relations in a group, and return the number of compared pairs."""
    lying = [(where, number) for number in group if (where := _extent_of(every[number])) is not None]
    lying.sort(key=lambda pair: pair[0].bounds)
    num_compared = 0
    for i, (where, one) in enumerate(lying):
        # Indices, since copies of the rest take minutes for 200,000 views of one storage.
        for at in range(i + 1, len(lying)):
            other_where, other = lying[at]
            if other_where.bounds[0] >= where.bounds[1] or num_compared >= most:
                break
            num_compared += 1
            relation = relation_of(where, other_where)
            if relation is not None:
                related.setdefault(one, []).append(Related(relation, every[other].name))
                related.setdefault(other, []).append(Related(relation, every[one].name))
    return num_compared


def _extent_of(entry: WeightEntry) -> Extent | None:
    """Return the place of the elements, None for several places or lazy copies."""
    lies: Extent | None = entry._source.lies
    if lies is not None:
        return lies
    from tensornp.core.lowlevel.torch_private import is_lazily_copied
    from tensornp.core.memory.footprint import extents_of

    held = held_by(entry)
    # The first write gives a lazy copy bytes of its own.
    found = [] if is_tensor(held) and is_lazily_copied(held) else extents_of(held)
    return found[0] if len(found) == 1 else None


def held_by(entry: WeightEntry) -> Any:
    """Return the tensor or array that an entry holds, None for files and made ones."""
    held = entry._source.held
    return held if is_tensor(held) or is_array(held) else None


def identity_of(entry: WeightEntry) -> object:
    """Return a key that is equal for all names of one tensor, or of the same stored elements."""
    source = entry._source
    return id(source) if entry.problem and source.lies is not None else source.identity


def not_counted(entries: Iterable[WeightEntry]) -> frozenset[str]:
    """Return the names that totals leave out: repeated and computed weights."""
    found: list[str] = []
    earlier: set[str] = set()
    for one in entries:
        same = [*one.tied_to, *(other.name for other in one.related if other.relation in (SAME, "reinterpreted"))]
        if one.kind == COMPUTED or (same and not earlier.isdisjoint(same)):
            found.append(one.name)
        if same:
            earlier.add(one.name)
    return frozenset(found)


def stored_in_files(entries: Iterable[WeightEntry]) -> tuple[int, int]:
    """Return the number of elements in files or packed, and their bytes."""
    pieces, elements, nbytes = [], 0, 0
    packed: dict[object, WeightEntry] = {}
    parts = (_parts_of(entry) for entry in entries if entry.kind != COMPUTED)
    for entry in chain.from_iterable(parts):
        extents, lies = entry.extents, entry._source.lies
        if lies is not None and extents and extents[0].nbytes:
            path, offset, length = extents[0]
            numel = min(entry.numel, entry.nbytes // lies.itemsize)
            pieces.append(Piece(path, offset, offset + length, min(entry.nbytes, length), numel))
        else:
            # Several chunks, or bytes that are packed: those are of one weight alone.
            packed[(extents, entry.shape) if extents else entry._source.identity] = entry
    for entry in packed.values():
        elements, nbytes = elements + entry.numel, nbytes + entry.nbytes
    own = counted_once(pieces)
    return elements + own[0], nbytes + own[1]


def _parts_of(entry: WeightEntry) -> tuple[WeightEntry, ...]:
    return (entry._source.consists_of if isinstance(entry._source, NoSource) else ()) or (entry,)


def stored_in_memory(objects: list[Any]) -> tuple[int, int]:
    """Return the number of elements in memory, and the bytes of their storages."""
    if not objects:
        return 0, 0
    from tensornp.core.lowlevel.modes import outside_modes

    return outside_modes(_stored_in_memory)(objects)


def _stored_in_memory(objects: Iterable[Any]) -> tuple[int, int]:
    from tensornp.core.lowlevel.torch_private import is_strided
    from tensornp.core.memory.footprint import extents_of, spans_of
    from tensornp.core.tensor.form import plain_part

    pieces: list[Piece] = []
    spans: list[Span] = []
    for one in objects:
        try:
            own, part = spans_of(one), plain_part(one)
            held = one if part is None else part
            # Most weights fill a storage of their own, which is told in a tenth of the time.
            if len(own) == 1 and is_strided(held) and held.is_contiguous():
                numel, nbytes = held.numel(), held.numel() * held.element_size()
                if nbytes == own[0][2] - own[0][1]:
                    pieces.append(Piece(*own[0], nbytes, numel))
                    spans += own
                    continue
            for extent in extents_of(one):
                low, high = extent.bounds
                stored = math.prod(n for n, step in zip(extent.shape, extent.strides, strict=True) if step)
                numel = min(stored, (high - low) // extent.itemsize)
                pieces.append(Piece(extent.device, low, high, numel * extent.itemsize, numel))
        except Exception:
            # An error of a user's class hides no other.
            continue
        spans += own
    return counted_once(pieces)[0], sum(nbytes_by_device(spans).values())

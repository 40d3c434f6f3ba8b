"""Find weights with the same elements, and count each byte once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.memory.extents import Piece, counted_once, nbytes_by_device
from tensornp.models.entries.entry import COMPUTED, WeightEntry

if TYPE_CHECKING:
    from tensornp.core.memory.extents import Span

_MAX_TIED = 1000
"""Tied names of one tensor; of more, each lists one or two others."""


def relate(entries: Iterable[WeightEntry]) -> list[WeightEntry]:
    """Return the weights with `tied_to`, the other names of the same elements."""
    every = list(entries)
    if all(one._source.held is None for one in every):
        # Weights in files need no torch.
        keys = [identity_of(one) for one in every]
    else:
        from tensornp.core.lowlevel.modes import outside_modes

        keys = outside_modes(list)(map(_elements_of, every))
    # Nearly all have one name: no list is made for each of these.
    first: dict[object, int] = {}
    tied: dict[int, list[int]] = {}
    for number, key in enumerate(keys):
        one = first.setdefault(key, number)
        if one != number:
            tied.setdefault(one, [one]).append(number)
    for some in tied.values():
        names = [every[number].name for number in (some if len(some) <= _MAX_TIED else some[:2])]
        for number in some:
            others = tuple(name for name in names if name != every[number].name)
            every[number] = every[number]._with_(tied_to=others)
    return every


def _elements_of(entry: WeightEntry) -> object:
    """Return a key that is equal for the same elements in memory, whatever object refers to them."""
    held = held_by(entry)
    if held is None or not entry.nbytes or entry.problem:
        return identity_of(entry)
    from tensornp.core.lowlevel.torch_private import is_lazily_copied
    from tensornp.core.memory.footprint import footprint_of

    # The first write gives a lazy copy bytes of its own.
    found = () if is_tensor(held) and is_lazily_copied(held) else footprint_of(held)[0]
    return found[0] if len(found) == 1 else identity_of(entry)


def held_by(entry: WeightEntry) -> Any:
    """Return the tensor or array that an entry holds, None for files and made ones."""
    held = entry._source.held
    return held if is_tensor(held) or is_array(held) else None


def identity_of(entry: WeightEntry) -> object:
    """Return a key that is equal for all names of one tensor, or of the same stored elements."""
    source = entry._source
    return id(source) if entry.problem and source.itemsize else source.identity


def each_once(entries: Iterable[WeightEntry]) -> list[WeightEntry]:
    """Return the weights that totals count: neither repeated nor computed ones."""
    found: list[WeightEntry] = []
    earlier: set[str] = set()
    for one in entries:
        if one.kind != COMPUTED and earlier.isdisjoint(one.tied_to):
            found.append(one)
        if one.tied_to:
            earlier.add(one.name)
    return found


def stored_in_files(entries: Iterable[WeightEntry]) -> tuple[int, int]:
    """Return the number of elements in files or packed, and their bytes."""
    pieces: list[Piece] = []
    packed: dict[object, WeightEntry] = {}
    for entry in (one for one in entries if one.kind != COMPUTED):
        extents, itemsize = entry.extents, entry._source.itemsize
        if itemsize and extents and extents[0].nbytes:
            path, offset, length = extents[0]
            numel = min(entry.numel, entry.nbytes // itemsize)
            pieces.append(Piece(path, offset, offset + length, min(entry.nbytes, length), numel))
        else:
            # Several chunks, or bytes that are packed: those are of one weight alone.
            packed[(extents, entry.shape) if extents else entry._source.identity] = entry
    elements, nbytes = counted_once(pieces)
    return elements + sum(one.numel for one in packed.values()), nbytes + sum(one.nbytes for one in packed.values())


def stored_in_memory(objects: list[Any]) -> tuple[int, int]:
    """Return the number of elements in memory, and the bytes of their storages."""
    if not objects:
        return 0, 0
    from tensornp.core.lowlevel.modes import outside_modes
    from tensornp.core.memory.footprint import footprint_of

    pieces: list[Piece] = []
    spans: list[Span] = []
    with outside_modes():
        for one in objects:
            try:
                extents, own = footprint_of(one)
                for extent in extents:
                    low, high = extent.bounds
                    stored = math.prod(n for n, step in zip(extent.shape, extent.strides, strict=True) if step)
                    numel = min(stored, (high - low) // extent.itemsize)
                    pieces.append(Piece(extent.device, low, high, numel * extent.itemsize, numel))
            except Exception:
                # An error of a user's class hides no other.
                continue
            spans += own
    return counted_once(pieces)[0], sum(nbytes_by_device(spans).values())

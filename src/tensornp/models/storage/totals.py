"""Count the bytes of weights in files once, and find the tensors in memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.memory.extents import Piece, counted_once
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.entries.source import NoSource


def held_by(entry: WeightEntry) -> Any:
    """Return the tensor or array that an entry holds, None for files and made ones."""
    held = entry._source.held
    if held is None or is_tensor(held) or is_array(held):
        return held
    from tensornp.core.tensor.stand_ins import own_tensor_of

    return own_tensor_of(held)


def identity_of(entry: WeightEntry) -> object:
    """Return a key that is equal for all names of one object.

    An object is one tensor, or the same elements of an array or a file. Only files of `torch.save` have weights that
    share bytes.
    """
    if not entry._source.itemsize:
        return entry._source.identity
    return id(entry._source) if entry.problem else (entry._source.identity, entry.note)


def stored_in_files(entries: Iterable[WeightEntry]) -> tuple[int, int]:
    """Return the number of elements in files or packed, and their bytes."""
    pieces, elements, nbytes = [], 0, 0
    packed: dict[object, WeightEntry] = {}
    parts = (_parts_of(entry) for entry in entries if entry.kind != COMPUTED)
    for entry in chain.from_iterable(parts):
        extents = () if entry.problem else entry.extents
        if len(extents) == 1 and extents[0].nbytes and entry._source.fills_extents:
            path, offset, length = extents[0]
            pieces.append(Piece(path, offset, offset + length, min(entry.nbytes, length), _num_in_file(entry)))
        else:
            # Several chunks, or bytes that are packed: those are of one weight alone.
            packed[(extents, entry.shape) if extents else entry._source.identity] = entry
    for entry in packed.values():
        elements, nbytes = elements + entry.numel, nbytes + entry.nbytes
    own = counted_once(pieces)
    return elements + own[0], nbytes + own[1]


def _parts_of(entry: WeightEntry) -> tuple[WeightEntry, ...]:
    """Return the weights in a file that make up an entry, or the entry itself."""
    return (entry._source.consists_of if isinstance(entry._source, NoSource) else ()) or (entry,)


def _num_in_file(entry: WeightEntry) -> int:
    """Return the number of stored elements; an expanded tensor stores fewer."""
    size = entry._source.itemsize
    return min(entry.numel, entry.nbytes // size) if size else entry.numel

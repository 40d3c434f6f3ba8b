"""How much lies in memory and in files, each byte once, whatever refers to it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import is_array, is_tensor
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.memory.footprint import Span, extents_of, spans_of
from tensornp.core.memory.storages import Piece, counted_once, merged
from tensornp.core.tensor.stand_ins import own_tensor_of
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.entries.source import NoSource
from tensornp.models.entries.tensor import PLAIN


def held_by(entry: WeightEntry) -> Any:
    """Return the tensor or the array that an entry holds; None where it is in a file, or made anew."""
    held = entry.source.held
    return held if held is None or is_tensor(held) or is_array(held) else own_tensor_of(held)


def identity_of(entry: WeightEntry) -> object:
    """Return what is equal for names of one object: one tensor, or the same elements of an array or a file.

    Elsewhere than in files of `torch.save`, no two weights lie in the same bytes.
    """
    if not entry.source.itemsize:
        return entry.source.identity
    return id(entry.source) if entry.problem else (entry.source.identity, entry.note)


@unnoticed
def stored_in_memory(objects: Iterable[Any]) -> tuple[int, int]:
    """Return how many elements tensors and arrays have in memory, and the bytes of their storages."""
    pieces = []
    spans = []
    for one in objects:
        own = spans_of(one)
        spans.extend(own)
        # Most weights are a storage of their own, which is told in a tenth of the time.
        if len(own) == 1 and _fills(one, own[0]):
            pieces.append(Piece(*own[0], one.numel() * one.element_size(), one.numel()))
            continue
        for extent in extents_of(one):
            low, high = extent.bounds
            numel = min(_num_stored(extent.shape, extent.strides), (high - low) // extent.itemsize)
            pieces.append(Piece(extent.device, low, high, numel * extent.itemsize, numel))
    return counted_once(pieces)[0], sum(merged(spans).values())


def _fills(one: Any, span: Span) -> bool:
    """Return whether the elements of an ordinary tensor are all that its storage has, each once."""
    if type(one) not in PLAIN or one.layout is not torch.strided or one.is_nested or not one.is_contiguous():
        return False
    return bool(one.numel() * one.element_size() == span[2] - span[1])


def stored_in_files(entries: Iterable[WeightEntry]) -> tuple[int, int]:
    """Return how many elements the weights have in files, or packed where no tensor is, and their bytes."""
    pieces, elements, nbytes = [], 0, 0
    packed: dict[object, WeightEntry] = {}
    parts = (_parts_of(entry) for entry in entries if entry.kind != COMPUTED)
    for entry in chain.from_iterable(parts):
        extents = () if entry.problem else entry.extents
        if len(extents) == 1 and extents[0].nbytes and entry.source.fills_extents:
            path, offset, length = extents[0]
            pieces.append(Piece(path, offset, offset + length, min(entry.nbytes, length), _num_in_file(entry)))
        else:
            # Several chunks, or bytes that are packed: those are of one weight alone.
            packed[(extents, entry.shape) if extents else entry.source.identity] = entry
    for entry in packed.values():
        elements, nbytes = elements + entry.numel, nbytes + entry.nbytes
    own = counted_once(pieces)
    return elements + own[0], nbytes + own[1]


def _parts_of(entry: WeightEntry) -> tuple[WeightEntry, ...]:
    """Return the weights of a file of which one consists, or itself."""
    return (entry.source.consists_of if isinstance(entry.source, NoSource) else ()) or (entry,)


def _num_in_file(entry: WeightEntry) -> int:
    """Return how many elements there are bytes for: of one that is expanded, some stand for many."""
    size = entry.source.itemsize
    return min(entry.numel, entry.nbytes // size) if size else entry.numel


def _num_stored(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    stored = 1
    for size, step in zip(shape, strides, strict=True):
        stored *= size if step else 1
    return stored

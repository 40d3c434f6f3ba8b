"""Locate weights in memory, and count their bytes once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_strided
from tensornp.core.memory.extents import Extent, Piece, Span, counted_once, nbytes_by_device
from tensornp.core.memory.footprint import extents_of, spans_of
from tensornp.core.tensor.form import plain_part


@outside_modes
def stored_in_memory(objects: Iterable[Any]) -> tuple[int, int]:
    """Return the number of elements in memory, and the bytes of their storages."""
    pieces: list[Piece] = []
    spans: list[Span] = []
    for one in objects:
        try:
            own = spans_of(one)
            pieces += _pieces_of(one, own)
        except Exception:
            # An error of a user's class hides no other.
            continue
        spans += own
    return counted_once(pieces)[0], sum(nbytes_by_device(spans).values())


def _pieces_of(one: Any, own: list[Span]) -> list[Piece]:
    # Most weights are a storage of their own, which is told in a tenth of the time.
    part = plain_part(one)
    held = one if part is None else part
    if len(own) == 1 and _fills(held, own[0]):
        return [Piece(*own[0], held.numel() * held.element_size(), held.numel())]
    pieces = []
    for extent in extents_of(one):
        low, high = extent.bounds
        numel = min(_num_stored(extent.shape, extent.strides), (high - low) // extent.itemsize)
        pieces.append(Piece(extent.device, low, high, numel * extent.itemsize, numel))
    return pieces


def _fills(one: Any, span: Span) -> bool:
    """Return whether an ordinary tensor has all elements of its storage once."""
    return is_strided(one) and one.is_contiguous() and bool(one.numel() * one.element_size() == span[2] - span[1])


def _num_stored(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    stored = 1
    for size, step in zip(shape, strides, strict=True):
        stored *= size if step else 1
    return stored


def span_of(held: Any) -> Span | None:
    """Return the span of the storage, None without exactly one."""
    spans = spans_of(held)
    return spans[0] if len(spans) == 1 else None


def extent_of(held: Any) -> Extent | None:
    """Return the place of the elements, None for several places or lazy copies."""
    if is_tensor(held) and torch_private.is_lazily_copied(held):
        # The first write gives it bytes of its own.
        return None
    found = extents_of(held)
    return found[0] if len(found) == 1 else None

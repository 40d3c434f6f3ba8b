"""How much lies in memory, each byte once, whatever refers to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.memory.footprint import extents_of, spans_of
from tensornp.core.memory.storages import merged


@unnoticed
def stored_in_memory(tensors: Iterable[Any]) -> tuple[int, int]:
    """Return how many elements the tensors have in memory, and the bytes of their storages."""
    elements: dict[tuple[str, int, int, int], int] = {}
    spans = []
    for tensor in tensors:
        spans.extend(spans_of(tensor))
        for extent in extents_of(tensor):
            low, high = extent.bounds
            # Views of one range, in whatever order, show the same elements.
            elements[extent.device, low, high, extent.itemsize] = _num_stored(extent.shape, extent.strides)
    return sum(elements.values()), sum(merged(spans).values())


def _num_stored(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    stored = 1
    for size, step in zip(shape, strides, strict=True):
        stored *= size if step else 1
    return stored

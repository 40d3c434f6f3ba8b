"""Boxes of a tensor: which of the wanted indices lie in one, and of which ones its elements in a row consist."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tensornp.models.reading.selection import Range, Shape


class Box(NamedTuple):
    """A box of a tensor: where it begins in each dimension, and how many indices it has there."""

    offsets: Shape
    sizes: Shape


class Met(NamedTuple):
    """What a box has of the wanted indices: where they are among those, and where in the box."""

    wanted: tuple[slice, ...]
    own: tuple[slice, ...]


def meet(ranges: tuple[Range, ...], box: Box) -> Met | None:
    """Return which of the wanted indices lie in a box, or None if none does."""
    wanted: list[slice] = []
    own: list[slice] = []
    for (first, num, step), offset, size in zip(ranges, box.offsets, box.sizes, strict=True):
        low, high = max(-((first - offset) // step), 0), min(-((first - offset - size) // step), num)
        if low >= high:
            return None
        begin = first + low * step - offset
        wanted.append(slice(low, high))
        own.append(slice(begin, begin + (high - low - 1) * step + 1, step))
    return Met(tuple(wanted), tuple(own))


def boxes_of_row(first: int, count: int, shape: Shape) -> Iterator[Box]:
    """Yield the boxes of which so many elements from one on consist, in the order of their indices."""
    if len(shape) < 2:
        yield Box((first,) * len(shape), (count,) * len(shape))
        return
    inner = math.prod(shape[1:])
    while count:
        row, rest = divmod(first, inner)
        if rest or count < inner:
            taken = min(count, inner - rest)
            yield from (Box((row, *box.offsets), (1, *box.sizes)) for box in boxes_of_row(rest, taken, shape[1:]))
        else:
            taken = count // inner * inner
            yield Box((row,) + (0,) * (len(shape) - 1), (count // inner, *shape[1:]))
        first, count = first + taken, count - taken


def why_not_whole(shape: Shape, boxes: list[Box]) -> str:
    """Return why boxes do not make the whole of a tensor, each element once; empty where they do."""
    for box in boxes:
        if len(box.offsets) != len(shape) or len(box.sizes) != len(shape):
            return "a chunk has another number of dimensions"
        if any(offset + size > n for n, offset, size in zip(shape, *box, strict=True)):
            return f"the chunk at {box.offsets} of {box.sizes} reaches beyond its shape"
    boxes = [box for box in boxes if 0 not in box.sizes]
    if len(boxes) > 1 and _is_overlapping(boxes):
        return "its chunks overlap"
    missing = math.prod(shape) - sum(math.prod(box.sizes) for box in boxes)
    return f"chunks with {missing:,} of its {math.prod(shape):,} elements are missing" if missing else ""


def _is_overlapping(boxes: list[Box]) -> bool:
    """Sweep along the dimension that tells most of them apart, and compare those that are met at once."""
    axis = max(range(len(boxes[0].offsets)), key=lambda d: len({box.offsets[d] for box in boxes}), default=0)
    if not boxes[0].offsets:
        return True
    active: list[Box] = []
    for box in sorted(boxes, key=lambda one: one.offsets[axis]):
        active = [one for one in active if one.offsets[axis] + one.sizes[axis] > box.offsets[axis]]
        if any(_overlap(one, box) for one in active):
            return True
        active.append(box)
    return False


def _overlap(a: Box, b: Box) -> bool:
    return all(i < j + m and j < i + n for i, n, j, m in zip(a.offsets, a.sizes, b.offsets, b.sizes, strict=True))

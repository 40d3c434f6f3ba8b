"""Blocks of a shape: as many elements as are read at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

BLOCK_NUMEL = 2**17
"""Elements of a block: 512 KiB of float32."""
_T = TypeVar("_T")


class Block(NamedTuple):
    """Elements that are read at once: the index of the first one, and how many there are along each dimension."""

    start: tuple[int, ...]
    shape: tuple[int, ...]


def blocks_of(shape: tuple[int, ...], max_numel: int = BLOCK_NUMEL) -> Iterator[Block]:
    """Yield what covers all elements of a shape in the order of their indices, of no more than `max_numel` each."""
    if 0 in shape:
        return
    dim, inner = len(shape), 1
    while dim and inner * shape[dim - 1] <= max_numel:
        dim -= 1
        inner *= shape[dim]
    if not dim:
        yield Block((0,) * len(shape), shape)
        return
    size, step, rest = shape[dim - 1], max(max_numel // inner, 1), shape[dim:]
    for lead in itertools.product(*map(range, shape[: dim - 1])):
        for first in range(0, size, step):
            lengths = (1,) * len(lead) + (min(step, size - first),)
            yield Block((*lead, first) + (0,) * len(rest), lengths + rest)


def batches(blocks: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield so many at a time, the last ones as many as are left (`itertools.batched`, since Python 3.12)."""
    left = iter(blocks)
    while some := list(itertools.islice(left, size)):
        yield some

"""Blocks of a shape, in the order of its indices; importing it needs no torch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

BLOCK_NUMEL = 2**17
"""Elements in one block: 512 KiB of float32, which stays in the L2 cache."""


class Block(NamedTuple):
    """Elements that are read together: the index of the first one, and the number along each dimension."""

    start: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """The index that takes these elements, as an array also if there are no dimensions."""
        return (..., *[slice(first, first + count) for first, count in zip(self.start, self.shape, strict=True)])


def blocks_of(shape: tuple[int, ...], max_numel: int = BLOCK_NUMEL) -> Iterator[Block]:
    """Yield blocks of at most `max_numel` elements that cover a shape, in the order of indices."""
    if 0 in shape:
        return iter(())
    dim, inner = len(shape), 1
    while dim and inner * shape[dim - 1] <= max_numel:
        dim -= 1
        inner *= shape[dim]
    if not dim:
        return iter((Block((0,) * len(shape), shape),))
    return _cut(shape, dim, max(max_numel // inner, 1))


def _cut(shape: tuple[int, ...], dim: int, step: int) -> Iterator[Block]:
    """Yield blocks of `step` indices of the dimension before `dim`, and of all indices of those after it."""
    size, rest = shape[dim - 1], shape[dim:]
    for lead in itertools.product(*map(range, shape[: dim - 1])):
        for first in range(0, size, step):
            lengths = (1,) * len(lead) + (min(step, size - first),)
            yield Block((*lead, first) + (0,) * len(rest), lengths + rest)

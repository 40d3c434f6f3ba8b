"""The geometry of strides and of blocks, by numbers alone."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MAX_NDIM = 64


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def num_reached(shape: Iterable[int], strides: tuple[int, ...]) -> int:
    """Return the number of elements from the first to the last, gaps included."""
    whole: int = sum(map(operator.mul, shape, strides))
    return 1 + whole - sum(strides)


def is_in_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and step != expected:
            return 0 in shape
        expected *= size
    return True


def place_of(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the place of an element in the order of the indices; -1 where the shape has none such."""
    is_there = len(index) == len(shape) and all(0 <= i < n for i, n in zip(index, shape, strict=True))
    return sum(i * step for i, step in zip(index, contiguous(shape), strict=True)) if is_there else -1


def unless_in_order(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the strides; None where elements lie in the order of their indices."""
    return None if strides is None or is_in_order(shape, strides) else strides


BLOCK_NUMEL = 2**17
"""Elements in one block: 512 KiB of float32, which stays in the L2 cache."""
PIECE_NUMEL = 2**18
"""Numbers for which temporary arrays are made at once."""


def pieces_of(numbers: Any) -> Iterator[Any]:
    return (numbers[at : at + PIECE_NUMEL] for at in range(0, len(numbers), PIECE_NUMEL))


class Block(NamedTuple):
    """Elements that are read together: the index of the first one, and the number along each dimension."""

    start: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """The index that takes these elements, as an array also if there are no dimensions."""
        return (..., *[slice(first, first + count) for first, count in zip(self.start, self.shape, strict=True)])


def blocks_of(shape: tuple[int, ...], max_numel: int = BLOCK_NUMEL) -> Iterator[Block]:
    if 0 in shape:
        return
    dim, inner = len(shape), 1
    while dim and inner * shape[dim - 1] <= max_numel:
        dim -= 1
        inner *= shape[dim]
    if not dim:
        yield Block((0,) * len(shape), shape)
        return
    # Some indices of the dimension before `dim`, and all indices of those after it.
    step, size, rest = max(max_numel // inner, 1), shape[dim - 1], shape[dim:]
    for lead in itertools.product(*map(range, shape[: dim - 1])):
        for first in range(0, size, step):
            lengths = (1,) * len(lead) + (min(step, size - first),)
            yield Block((*lead, first) + (0,) * len(rest), lengths + rest)

"""Choose the two-dimensional planes of a tensor that a picture shows."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tensornp.core.lowlevel.text import counted, quoted
from tensornp.core.tensor.shards import Runs, ShardFacts
from tensornp.core.values.pictures.heatmap import NOTHING, Heatmap
from tensornp.errors import BadRequestError


@dataclass(frozen=True, slots=True)
class Tiles:
    """The shown planes, in order.

    `plane` are the rows and columns of each: the last two dimensions. `indices` are the indices of the planes in the
    other dimensions, and `grid` the rows and columns of planes. `title` is short: "plane [0, 3] of 2 × 4", or empty.
    `held` are the rows and columns of the whole tensor that a single plane has; None if they are the same.
    """

    plane: tuple[int, int]
    indices: tuple[tuple[int, ...], ...]
    grid: tuple[int, int] = (1, 1)
    title: str = ""
    held: tuple[Runs | None, Runs | None] = (None, None)


def tiles_of(
    shape: tuple[int, ...],
    index: Sequence[int] | int | None = None,
    max_tiles: int = 1,
    shard: ShardFacts | None = None,
) -> Tiles:
    """Return the shown planes of a tensor of `shape`.

    `index` has an integer for each dimension except the last two; None shows the first `max_tiles` planes, and two
    further dimensions are the rows and columns of the grid. With a `shard`, the index and the title are those in the
    whole. Raises BadRequestError if `index` does not fit, or another rank has it.
    """
    outer, whole = shape[:-2], shape if shard is None else shard.whole
    plane = (1, 1, *shape)[-2], (1, 1, *shape)[-1]
    count = min(math.prod(outer), max(1, max_tiles))
    indices = tuple(itertools.islice(itertools.product(*map(range, outer)), count))
    if index is not None:
        asked = _checked(index, whole)
        at = asked if shard is None else shard.index_here(asked)
        if at is None:
            raise BadRequestError(f"the plane at {list(asked)} is not on this rank: {shard}")
        indices = (at,)
    held = shard.held if shard is not None and len(indices) == 1 else None
    rows, columns = (None, None, *(held or ()))[-2:]
    if not outer or not indices:
        return Tiles(plane, indices, held=(rows, columns))
    if len(indices) == 1:
        at = indices[0] if shard is None else shard.index_in_whole(indices[0])
        title = f"plane {list(at)} of {_sizes_text(whole[:-2])}"
        return Tiles(plane, indices, title=title, held=(rows, columns))
    is_whole = count == math.prod(outer)
    grid = (outer[0], outer[1]) if is_whole and len(outer) == 2 else grid_of(count, plane)
    title = f"{'all' if is_whole else f'the first {count}'} planes of {_sizes_text(outer)}"
    return Tiles(plane, indices, grid, title + (f" of the {shard.scope}" if shard is not None else ""))


def _sizes_text(sizes: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in sizes)


def _checked(index: Sequence[int] | int, shape: tuple[int, ...]) -> tuple[int, ...]:
    outer = shape[:-2]
    try:
        given = index if isinstance(index, Iterable) else (index,)
        at = None if isinstance(index, (str, bool)) else tuple(map(operator.index, given))
    except TypeError:
        at = None
    if at is None or len(at) != len(outer) or not all(-size <= i < size for i, size in zip(at, outer, strict=True)):
        cure = f"pass {counted(len(outer), 'integer')} within {list(outer)}" if outer else "pass None"
        raise BadRequestError(f"index {quoted(index)} leads to no plane of shape {shape}; {cure}")
    return tuple(i % size for i, size in zip(at, outer, strict=True))


def grid_of(count: int, plane: tuple[int, int]) -> tuple[int, int]:
    """Return in how many rows and columns so many planes look most like a square, the wider one of two."""
    if not count:
        return 0, 0
    # One pixel between two planes counts for those that are narrow.
    height, width = plane[0] + 1, plane[1] + 1
    columns = min(count, max(1, math.ceil(math.sqrt(count * height / width))))
    return -(-count // columns), columns


def tiled(heatmaps: Sequence[Heatmap], grid: tuple[int, int]) -> Heatmap:
    """Return one heat map of several, laid out row by row with an empty pixel between them."""
    first = heatmaps[0]
    height, width = first.flags.shape
    size = grid[0] * (height + 1) - 1, grid[1] * (width + 1) - 1
    values, flags = np.full(size, np.nan), np.full(size, NOTHING, np.uint8)
    for i, heatmap in enumerate(heatmaps):
        top, left = i // grid[1] * (height + 1), i % grid[1] * (width + 1)
        values[top : top + height, left : left + width] = heatmap.values
        flags[top : top + height, left : left + width] = heatmap.flags
    is_signed = any(heatmap.is_signed for heatmap in heatmaps) or bool((values < 0).any() and (values > 0).any())
    return Heatmap(values, flags, first.shape, first.cell, is_signed)

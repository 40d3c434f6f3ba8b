"""Which two-dimensional planes of a tensor a picture shows, and in words which these are."""

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

MAX_TILES = 64


@dataclass(frozen=True, slots=True)
class Tiles:
    """The planes that are shown, in order.

    Attributes
    ----------
    plane : tuple of int
        Rows and columns of each: the last two dimensions; one row for a tensor of one dimension or none.
    indices : tuple of tuple of int
        Where each plane is along the other dimensions: ``t[index]`` is the plane.
    grid : tuple of int
        In how many rows and columns they are laid out, row by row.
    caption : str
        Which planes these are: "the last two of 4 dimensions, at [0, 3]"; empty where the plane is the whole tensor.
    outer : tuple of int
        The sizes of these other dimensions.
    shard : ShardFacts or None
        Where they lie in a tensor that is spread over ranks, whose indices the words have.
    """

    plane: tuple[int, int]
    indices: tuple[tuple[int, ...], ...]
    grid: tuple[int, int]
    caption: str
    outer: tuple[int, ...] = ()
    shard: ShardFacts | None = None

    @property
    def title(self) -> str:
        """A short title: "plane [0, 3] of 2 × 4"; empty for the whole tensor."""
        if not self.outer or not self.indices:
            return ""
        if len(self.indices) == 1:
            whole = self.outer if self.shard is None else self.shard.whole[:-2]
            return f"plane {list(_in_whole(self.indices[0], self.shard))} of {_sizes_text(whole)}"
        size = _sizes_text(self.outer)
        first = "all" if len(self.indices) == math.prod(self.outer) else f"the first {len(self.indices)}"
        return f"{first} planes of {size}"

    @property
    def held(self) -> tuple[Runs | None, Runs | None]:
        """Rows and columns of the whole tensor that the plane has; None if they are the same."""
        held = self.shard.held if self.shard is not None and len(self.indices) == 1 else None
        rows, columns = (None, None, *(held or ()))[-2:]
        return rows, columns


def _sizes_text(sizes: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in sizes)


def _in_whole(index: tuple[int, ...], shard: ShardFacts | None) -> tuple[int, ...]:
    return index if shard is None else shard.index_in_whole(index)


def tiles_of(
    shape: tuple[int, ...],
    index: Sequence[int] | int | None = None,
    max_tiles: int = 1,
    shard: ShardFacts | None = None,
) -> Tiles:
    """Return which planes of a tensor of `shape` are shown.

    Parameters
    ----------
    shape : tuple of int
    index : int or sequence of int, optional
        Which plane: an index for each dimension but the last two, negative ones from the end. None shows the first
        `max_tiles` planes.
    max_tiles : int
        Planes that are laid out in a grid at most; of two further dimensions, these are the rows and columns of it.
    shard : ShardFacts, optional
        Where it lies in a tensor that is spread over ranks: `index`, and what is said, are then of that.

    Raises
    ------
    BadRequestError
        If `index` does not fit, or another rank has it.
    """
    *outer, rows, columns = (1, 1, *shape) if len(shape) < 2 else shape
    outer = outer if len(shape) > 2 else []
    plane, which = (rows, columns), f"the last two of {len(shape)} dimensions"
    if index is not None:
        whole = shape if shard is None else shard.whole
        asked = _checked(index, tuple(outer) if shard is None else whole[:-2], whole)
        at = asked if shard is None else shard.index_here(asked)
        if at is None:
            raise BadRequestError(f"the plane at {list(asked)} is not on this rank: {shard}")
        return Tiles(plane, (at,), (1, 1), f"{which}, at {list(asked)}" if outer else "", tuple(outer), shard)
    total = math.prod(outer)
    count = min(total, max(1, max_tiles))
    indices = tuple(itertools.islice(itertools.product(*map(range, outer)), count))
    if not outer:
        return Tiles(plane, indices, (1, 1), "", shard=shard)
    if total <= 1 or max_tiles <= 1:
        at_first = f"{which}, at {list(_in_whole(indices[0], shard))}" if indices else which
        return Tiles(plane, indices, (min(1, total), 1), at_first, tuple(outer), shard)
    is_whole = count == total
    grid = (outer[0], outer[1]) if is_whole and len(outer) == 2 else grid_of(count, plane)
    said = f"all {total:,}" if is_whole else f"the first {count:,} of {total:,}"
    whose = f" of the {shard.scope}" if shard is not None else ""
    return Tiles(plane, indices, grid, f"{which}, {said}{whose} in {grid[0]} × {grid[1]} tiles", tuple(outer), shard)


def _checked(index: Sequence[int] | int, outer: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    try:
        at = None if isinstance(index, (str, bool)) else tuple(map(operator.index, _each(index)))
    except TypeError:
        at = None
    if at is None or len(at) != len(outer) or not all(-size <= i < size for i, size in zip(at, outer, strict=True)):
        raise BadRequestError(
            f"index {quoted(index)} leads to no plane of shape {shape}; pass "
            f"{counted(len(outer), 'integer')} within {list(outer)}"
            if outer
            else f"index {quoted(index)} leads nowhere in shape {shape}, which is one plane; pass None"
        )
    return tuple(i % size for i, size in zip(at, outer, strict=True))


def _each(index: Sequence[int] | int) -> Iterable[int]:
    return index if isinstance(index, Iterable) else (index,)


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
    is_signed = any(heatmap.is_signed for heatmap in heatmaps) or _have_both_sides(heatmaps)
    return Heatmap(values, flags, first.shape, first.cell, is_signed, first.centre)


def _have_both_sides(heatmaps: Sequence[Heatmap]) -> bool:
    values = [heatmap.values - heatmap.centre for heatmap in heatmaps]
    return any((v < 0).any() for v in values) and any((v > 0).any() for v in values)

"""Heat maps of the planes of a tensor, or of the difference of two, filled by blocks in the order of their indices."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.memory.blocks import Block, batches
from tensornp.core.tensor.shards import ShardFacts
from tensornp.core.values.compare.aligned import pairs_of
from tensornp.core.values.pictures.heatmap import Heatmap, HeatmapBuilder
from tensornp.core.values.pictures.limits import Limits, limits
from tensornp.core.values.pictures.tiles import Tiles, tiled, tiles_of
from tensornp.core.values.reading.blocks import Part
from tensornp.core.values.reading.supply import Supply, refuse_endless, supply_of
from tensornp.core.values.stats.figures import modulus_of

Array = np.ndarray[Any, Any]
MAX_TILED_NUMEL = 2**10
"""Elements of a plane up to which several are laid out side by side."""
MAX_TILES = 64
_GRID_PIXELS = 192
_TASK_BLOCKS = 16


@dataclass(frozen=True, slots=True)
class PlaneMap:
    """A heat map, the limits of its colours, and which planes of what it shows."""

    heatmap: Heatmap
    limits: Limits
    tiles: Tiles


class PlaneBuilder:
    """Takes the numbers of a tensor of `shape` in the order of their indices, and makes heat maps of its planes."""

    def __init__(
        self, shape: tuple[int, ...], index: tuple[int, ...] | int | None = None, shard: ShardFacts | None = None
    ) -> None:
        plane = math.prod(shape[-2:])
        self.tiles = tiles_of(shape, index, MAX_TILES if plane <= MAX_TILED_NUMEL else 1, shard)
        self._numel, self._is_complex = plane, False
        outer = shape[:-2]
        # Where each plane begins among all elements.
        self._starts = [int(np.ravel_multi_index(at, outer)) * plane if outer else 0 for at in self.tiles.indices]
        side = max(_GRID_PIXELS // max(*self.tiles.grid, 1), 1)
        self._builders = [HeatmapBuilder(self.tiles.plane, side, side) for _ in self._starts]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self._numel or not self._builders

    def wants(self, start: int, size: int) -> bool:
        """Return whether some of these elements are shown."""
        return any(at < start + size and start < at + self._numel for at in self._starts)

    def add(self, values: Array, start: int) -> None:
        """Take the numbers of a flat block, of which the first one is element `start` of the tensor."""
        hidden = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
        flat = np.ma.getdata(values)
        if flat.dtype.kind == "c":
            self._is_complex = True
            flat = modulus_of(np.ascontiguousarray(flat.real), np.ascontiguousarray(flat.imag))
        shown = None if hidden is None else ~hidden
        for at, builder in zip(self._starts, self._builders, strict=True):
            low, high = max(start, at), min(start + flat.size, at + self._numel)
            if low < high:
                part = slice(low - start, high - start)
                _add_flat(builder, flat[part], None if shown is None else shown[part], low - at)

    def finish(self) -> PlaneMap:
        """Return the picture of what was added so far."""
        maps = [builder.finish() for builder in self._builders]
        whole = maps[0] if len(maps) == 1 else tiled(maps, self.tiles.grid)
        return PlaneMap(replace(whole, is_modulus=self._is_complex), limits(whole), self.tiles)


def _add_flat(builder: HeatmapBuilder, flat: Array, shown: Array | None, start: int) -> None:
    """Add elements of a plane that follow each other: the rest of a row, whole rows, and the beginning of one."""
    width = builder.shape[1]
    at = 0
    while at < flat.size:
        row, column = divmod(start + at, width)
        left = flat.size - at
        rows, columns = (left // width, width) if not column and left >= width else (1, min(width - column, left))
        part = slice(at, at + rows * columns)
        mask = None if shown is None else shown[part].reshape(rows, columns)
        builder.add(flat[part].reshape(rows, columns), row, column, shown=mask)
        at += rows * columns


@outside_modes
def plane_map(obj: Any, index: tuple[int, ...] | int | None = None) -> PlaneMap | None:
    """Return the heat map of the last two dimensions of a tensor or an array; None where there is nothing to show.

    Of more dimensions it shows the plane at `index`, or without one the first plane, or up to 64 small ones in a grid.
    Of what is spread over ranks that is a plane of this rank's part, and `index` the one in the whole.
    Reads the blocks in which these planes lie, and of a sparse tensor all, laid out densely.
    """
    supply = supply_of(obj, in_order=True, is_dense=True)
    if len(supply.parts) != 1 or not supply.shape:
        return None
    refuse_endless(supply, "a heat map")
    builder = PlaneBuilder(supply.shape, index, supply.shard)
    if builder.is_empty:
        return None
    _fill(builder, supply)
    return builder.finish()


def _fill(builder: PlaneBuilder, supply: Supply) -> None:
    (part,) = supply.parts
    for some in batches(_wanted(builder, part), _TASK_BLOCKS):
        use = functools.partial(_add_next, builder, iter([start for start, _ in some]))
        # Asked once for several blocks: it may take the system longer than to read one.
        in_place = part.can_be_read_in_place()
        part.use_each([block for _, block in some], use, in_place=in_place)


def _add_next(builder: PlaneBuilder, starts: Iterator[int], values: Array, _: Block) -> None:
    builder.add(values.reshape(-1), next(starts))


def _wanted(builder: PlaneBuilder, part: Part) -> Iterator[tuple[int, Block]]:
    """Yield the blocks of which some elements are shown, and the number of the first of each."""
    start = 0
    for block in part.blocks():
        size = math.prod(block.shape) * part.per_element
        if builder.wants(start, size):
            yield start, block
        start += size


@outside_modes
def difference_map(a: Any, b: Any) -> PlaneMap | None:
    """Return the heat map of ``b - a`` for two tensors or arrays of one shape; None where there is nothing to show."""
    first, second = (supply_of(obj, in_order=True, is_dense=True, caller="compare") for obj in (a, b))
    if first.shape != second.shape or not first.shape or len(first.parts) != 1 or len(second.parts) != 1:
        return None
    builder = PlaneBuilder(first.shape, shard=first.shard)
    if builder.is_empty:
        return None
    start = 0
    with np.errstate(all="ignore"):
        for left, right in pairs_of(first, second):
            if builder.wants(start, left.size):
                wide = np.result_type(left.dtype, right.dtype, np.float64)
                difference = np.ma.asanyarray(right.astype(wide) - left.astype(wide))
                # What is infinite on both sides does not differ.
                same = (left == right) & ~np.ma.getmaskarray(difference)
                data = np.where(same, 0, np.ma.getdata(difference))
                builder.add(np.ma.MaskedArray(data, np.ma.getmaskarray(difference)), start)
            start += left.size
    return builder.finish()

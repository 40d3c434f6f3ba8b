"""Draw heat maps of the planes of a tensor, or of the difference of two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.values.blocks import Block, blocks_of
from tensornp.core.values.compare.numbers import differing
from tensornp.core.values.pictures.heatmap import Heatmap, HeatmapBuilder
from tensornp.core.values.pictures.limits import Limits, limits
from tensornp.core.values.pictures.tiles import Tiles, tiled, tiles_of
from tensornp.core.values.sources import Source, refuse_endless, source_of
from tensornp.core.values.stats.figures import modulus_of

Array = np.ndarray[Any, Any]
MAX_TILED_NUMEL = 2**10
"""Elements of a plane up to which several planes are shown."""
MAX_TILES = 64
_GRID_PIXELS = 192


@dataclass(frozen=True, slots=True)
class PlaneMap:
    """A heat map, the limits of its colours, and the planes that it shows."""

    heatmap: Heatmap
    limits: Limits
    tiles: Tiles


@outside_modes
def plane_map(obj: Any, index: tuple[int, ...] | int | None = None) -> PlaneMap | None:
    """Return the heat map of the last two dimensions; None if there is nothing to show.

    With more dimensions it shows the plane at `index`, or else the first plane, or up to 64 small ones in a grid. For a
    sharded tensor, `index` is that in the whole. Only these planes are read; sparse tensors become dense.
    """
    source = source_of(obj, in_order=True, is_dense=True)
    if len(source.parts) != 1 or not source.shape:
        return None
    refuse_endless(source, "a heat map")
    return _draw(source, source.parts[0].read, index)


@outside_modes
def difference_map(a: Any, b: Any) -> PlaneMap | None:
    """Return the heat map of ``b - a`` for one shape; None if there is nothing to show."""
    first, second = (source_of(obj, in_order=True, is_dense=True, caller="compare") for obj in (a, b))
    if first.shape != second.shape or not first.shape or len(first.parts) != 1 or len(second.parts) != 1:
        return None
    if first.parts[0].shape != second.parts[0].shape:
        return None

    def read(blocks: Iterable[Block]) -> Iterator[Any]:
        some = list(blocks)
        for left, right in zip(first.parts[0].read(some), second.parts[0].read(some), strict=True):
            wide = np.result_type(left.dtype, right.dtype, np.float64)
            difference = np.ma.asanyarray(right.astype(wide) - left.astype(wide))
            # Equal infinities do not differ.
            data = np.where(differing(np.ma.getdata(left), np.ma.getdata(right)), np.ma.getdata(difference), 0)
            yield np.ma.MaskedArray(data, np.ma.getmaskarray(difference))

    return _draw(first, read, None)


@np.errstate(all="ignore")
def _draw(
    source: Source, read: Callable[[Iterable[Block]], Iterator[Any]], index: tuple[int, ...] | int | None
) -> PlaneMap | None:
    plane, packed = math.prod(source.shape[-2:]), source.parts[0].per_element
    tiles = tiles_of(source.shape, index, MAX_TILES if plane <= MAX_TILED_NUMEL else 1, source.shard)
    if not plane or not tiles.indices:
        return None
    side, is_complex, maps = max(_GRID_PIXELS // max(*tiles.grid, 1), 1), False, []
    for at in tiles.indices:
        builder, ndim = HeatmapBuilder(tiles.plane, side, side), len(source.shape)
        outer = at if ndim > 2 else ()
        inner = list(blocks_of(source.parts[0].shape[len(outer) :]))
        blocks = [Block((*outer, *one.start), ((1,) * len(outer) + one.shape)) for one in inner]
        for block, found in zip(inner, read(blocks), strict=True):
            values = np.ma.getdata(found)
            is_complex |= values.dtype.kind == "c"
            values = modulus_of(values) if values.dtype.kind == "c" else values
            shape = 1 if ndim == 1 else block.shape[0], block.shape[-1] * packed
            shown = ~np.ma.getmaskarray(found).reshape(shape) if isinstance(found, np.ma.MaskedArray) else None
            row = 0 if ndim == 1 else block.start[0]
            builder.add(values.reshape(shape), row, block.start[-1] * packed, shown=shown)
        maps.append(builder.finish())
    whole = maps[0] if len(maps) == 1 else tiled(maps, tiles.grid)
    return PlaneMap(replace(whole, is_modulus=is_complex), limits(whole), tiles)

"""Draw heat maps: planes of a tensor, the plane of a window, and the difference of two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.tensor.strides import Block, blocks_of
from tensornp.core.values.compare.numbers import differing
from tensornp.core.values.pictures.heatmap import Heatmap, HeatmapBuilder, Limits, limits, tiled
from tensornp.core.values.pictures.image_layout import Tiles, tiles_of
from tensornp.core.values.shown.window import Window
from tensornp.core.values.shown.window_values import Subject, elements_in
from tensornp.core.values.sources import Source, nbytes_unasked, refuse_endless, source_of
from tensornp.core.values.stats.figures import modulus_of
from tensornp.core.values.stored import StoredValues

Array = np.ndarray[Any, Any]
MAX_TILED_NUMEL = 2**10
"""Elements of a plane up to which several planes are shown."""
MAX_TILES = 64
_GRID_PIXELS = 192
SIDE = 96
"""Pixels of a side of the plane of a window at most."""


@dataclass(frozen=True, slots=True)
class PlaneMap:
    """A heat map, the limits of its colours, its planes, and whether all finite elements have one value."""

    heatmap: Heatmap
    limits: Limits
    tiles: Tiles
    is_one_value: bool = False


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
    side, maps, is_complex = max(_GRID_PIXELS // max(*tiles.grid, 1), 1), [], False
    for at in tiles.indices:
        builder, ndim = HeatmapBuilder(tiles.plane, side, side), len(source.shape)
        outer = at if ndim > 2 else ()
        inner = list(blocks_of(source.parts[0].shape[len(outer) :]))
        blocks = [Block((*outer, *one.start), ((1,) * len(outer) + one.shape)) for one in inner]
        for block, found in zip(inner, read(blocks), strict=True):
            is_complex |= found.dtype.kind == "c"
            row, rows = (0, 1) if ndim == 1 else (block.start[0], block.shape[0])
            _add(builder, found, (row, block.start[-1] * packed), (rows, block.shape[-1] * packed))
        maps.append(builder.finish())
    whole = maps[0] if len(maps) == 1 else tiled(maps, tiles.grid)
    return PlaneMap(replace(whole, is_modulus=is_complex), limits(whole), tiles)


def _add(builder: HeatmapBuilder, found: Any, first: tuple[int, int], shape: tuple[int, int]) -> Array:
    """Add a flat block that begins at this row and column; return its shown numbers."""
    flat = np.ma.getdata(found)
    values = (modulus_of(flat) if flat.dtype.kind == "c" else flat).reshape(shape)
    shown = ~np.ma.getmaskarray(found).reshape(shape) if isinstance(found, np.ma.MaskedArray) else None
    builder.add(values, *first, shown=shown)
    return values if shown is None else values[shown]


def may_be_read_unasked(subject: Subject, shape: tuple[int, ...], max_nbytes: int) -> bool:
    """Return whether elements of `shape` may be read automatically, as for a card."""
    is_stored = type(subject.tensor) is StoredValues
    is_free = is_stored or nbytes_unasked(subject.info) > 0
    return is_free and math.prod(shape) * subject.info.itemsize <= max_nbytes


@outside_modes
@np.errstate(all="ignore")
def overview_of(subject: Subject, window: Window, is_wanted: Callable[[], bool] = lambda: True) -> PlaneMap | None:
    """Return the heat map of the plane of `window`, or None when it is no longer wanted.

    Reads every element of the plane; `is_wanted` is called before each block. Raises NotReadError if far more elements
    would be read.
    """
    builder, ends, is_complex, is_mask = HeatmapBuilder(window.plane, SIDE, SIDE), [math.inf, -math.inf], False, False
    for block in blocks_of(window.plane):
        if not is_wanted():
            return None
        begins: dict[Any, int] = dict(zip((window.row_axis, window.column_axis), block.start, strict=True))
        corner = tuple(begins.get(axis, at) for axis, at in enumerate(window.corner))
        part = replace(window, corner=corner, num_rows=block.shape[0], num_columns=block.shape[1])
        found = elements_in(subject, part)
        is_complex, is_mask = found.dtype.kind == "c", found.dtype == bool
        first, shape = (block.start[0], block.start[1]), (block.shape[0], block.shape[1])
        seen = _add(builder, found, first, shape)
        if seen.size and not (np.isfinite(seen.min()) and np.isfinite(seen.max())):
            seen = seen[np.isfinite(seen)]
        if seen.size:
            ends = [min(ends[0], float(seen.min())), max(ends[1], float(seen.max()))]
    heatmap = replace(builder.finish(), is_modulus=is_complex)
    # In a mask of which each pixel has some of both, all pixels are of one value.
    found_limits = Limits(ends[0], ends[1]) if is_mask and ends[0] < ends[1] else limits(heatmap)
    return PlaneMap(heatmap, found_limits, Tiles(window.plane, ()), ends[0] == ends[1])

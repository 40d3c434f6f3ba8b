"""Draw heat maps: planes of a tensor, the plane of a window, and the difference of two."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.tensor.form import Places
from tensornp.core.values.compare.numbers import differing
from tensornp.core.values.pictures.heatmap import Heatmap, Limits, heatmap_of, limits, tiled
from tensornp.core.values.pictures.image_layout import Tiles, tiles_of
from tensornp.core.values.shown.preview import gathered
from tensornp.core.values.shown.window import Window
from tensornp.core.values.shown.window_values import Subject, elements_in, subject_of
from tensornp.core.values.sources import nbytes_unasked
from tensornp.core.values.stats.figures import modulus_of
from tensornp.core.values.stored import Box, StoredValues
from tensornp.errors import BadRequestError, NoDataError

MAX_TILED_NUMEL = 2**10
"""Elements of a plane up to which several planes are shown."""
MAX_TILES = 64
_GRID_PIXELS = 192
SIDE = 96
"""Pixels of a side of the plane of a window at most."""
MAX_NUMEL = 2**32
"""Elements of a plane that are read at most; only expanded tensors have more."""


@dataclass(frozen=True, slots=True)
class PlaneMap:
    heatmap: Heatmap
    limits: Limits
    tiles: Tiles


@outside_modes
def plane_map(obj: Any, index: tuple[int, ...] | int | None = None) -> PlaneMap | None:
    """Return the heat map of the plane at `index`, or of up to 64 small planes; None if there is none."""
    return _planes_of(subject_of(obj), index)


@outside_modes
def difference_map(a: Any, b: Any) -> PlaneMap | None:
    first, second = subject_of(a), subject_of(b)
    if first.shape != second.shape or first.num_parts:
        return None
    return _planes_of(subject_of(difference_of(first, second)), None)


def difference_of(first: Subject, second: Subject) -> StoredValues:
    """Return ``second - first`` in float64 or complex128, read on request; equal elements give 0."""
    if first.shape != second.shape:
        raise NoDataError(f"shapes differ: {first.shape} and {second.shape}; open each of them with %weights")
    is_complex = any(one.info.dtype.is_complex for one in (first, second))
    dtype = np.complex128 if is_complex else np.float64

    @outside_modes
    @np.errstate(all="ignore")
    def read(box: Box) -> Any:
        places: Places = [range(part.start, part.stop) for part in box]
        a, b = (gathered(one.tensor, one.info, one.plan, places) for one in (first, second))
        # The difference of two integers of 64 bits needs more.
        wide = np.longdouble if all(one.dtype.kind in "iu" for one in (a, b)) else dtype
        a, b = a.astype(wide), b.astype(wide)
        return np.where(differing(a, b), b - a, 0).astype(dtype)

    name = np.dtype(dtype).name
    return StoredValues(first.shape, name, lambda box: torch.from_numpy(read(box)), where="difference")


def _planes_of(subject: Subject, index: tuple[int, ...] | int | None) -> PlaneMap | None:
    shape, ndim = subject.shape, len(subject.shape)
    num_tiles = MAX_TILES if math.prod(shape[-2:]) <= MAX_TILED_NUMEL else 1
    tiles = tiles_of(shape, index, num_tiles, subject.shard)
    if subject.num_parts or 0 in (*shape, ndim, len(tiles.indices)):
        return None
    if math.prod(tiles.plane) > MAX_NUMEL:
        raise BadRequestError(f"a heat map would read {math.prod(tiles.plane):,} elements; pass a slice")
    side, maps = max(_GRID_PIXELS // max(tiles.grid), 1), list[Any]()
    for at in tiles.indices:
        corner = (*at, *(0,) * min(ndim, 2))
        window = Window(shape, ndim - 2 if ndim > 1 else None, ndim - 1, corner, *tiles.plane)
        maps.append(_heatmap_of(subject, window, side))
    whole = maps[0] if len(maps) == 1 else replace(tiled(maps, tiles.grid), is_modulus=maps[0].is_modulus)
    return PlaneMap(whole, limits(whole), tiles)


def may_be_read_unasked(subject: Subject, shape: tuple[int, ...], max_nbytes: int) -> bool:
    is_stored = type(subject.tensor) is StoredValues
    is_free = is_stored or nbytes_unasked(subject.info) > 0
    return is_free and math.prod(shape) * subject.info.itemsize <= max_nbytes


@outside_modes
def overview_of(subject: Subject, window: Window, is_wanted: Callable[[], bool] = lambda: True) -> PlaneMap | None:
    """Return the heat map of the plane of `window`, or None when it is no longer wanted."""
    heatmap = _heatmap_of(subject, window, SIDE, is_wanted)
    return PlaneMap(heatmap, limits(heatmap), Tiles(window.plane, ())) if heatmap is not None else None


def _heatmap_of(
    subject: Subject, window: Window, side: int, is_wanted: Callable[[], bool] = lambda: True
) -> Heatmap | None:
    is_complex = subject.plan.dtype.kind == "c"

    def read(rows: range, columns: range) -> Any:
        if not is_wanted():
            return None
        begins = {window.row_axis: rows.start, window.column_axis: columns.start}
        corner = tuple([begins.get(axis, at) for axis, at in enumerate(window.corner)])
        part = replace(window, corner=corner, num_rows=len(rows), num_columns=len(columns))
        found = elements_in(subject, part).reshape(len(rows), len(columns))
        return modulus_of(found) if is_complex else found

    heatmap = heatmap_of(window.plane, read, side, side)
    return replace(heatmap, is_modulus=is_complex) if heatmap is not None else None

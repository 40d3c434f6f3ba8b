"""The plane that a window is a part of, as a heat map: any two axes of whatever a window shows, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.values.compare.numbers import sizes_of_change
from tensornp.core.values.pictures.heatmap import FINITE, Heatmap, HeatmapBuilder, MeanBuilder
from tensornp.core.values.pictures.limits import Limits, limits
from tensornp.core.values.reading.stored import StoredValues
from tensornp.core.values.reading.supply import nbytes_unasked
from tensornp.core.values.shown.window import Window
from tensornp.core.values.shown.window_values import Subject, read_array
from tensornp.core.values.stats.figures import modulus_of

SIDE = 96
"""Pixels of a side at most."""
_BLOCK_NUMEL = 2**17
"""Elements that are read at once, so that a window which is wanted meanwhile waits for some milliseconds at most."""


class Overview(NamedTuple):
    """A heat map, the limits of its colours, and whether all finite elements have one value, not the pixels alone."""

    heatmap: Heatmap
    limits: Limits
    is_one_value: bool = False


def nbytes_read(subject: Subject, window: Window) -> int:
    """Return how many bytes of elements a heat map of the plane reads."""
    return math.prod(window.plane) * subject.info.itemsize


def may_be_read_unasked(subject: Subject, nbytes: int, max_nbytes: int) -> bool:
    """Return whether so many bytes of elements may be read though nobody has asked for that: as those of a card."""
    is_stored = type(subject.tensor) is StoredValues
    return nbytes <= max_nbytes and (is_stored or nbytes_unasked(subject.tensor, subject.info) > 0)


def _always() -> bool:
    return True


@outside_modes
@np.errstate(all="ignore")
def overview_of(subject: Subject, window: Window, is_wanted: Callable[[], bool] = _always) -> Overview | None:
    """Return the heat map of the plane of `subject` in which `window` lies, of complex numbers that of the modulus.

    Reads every element of the plane; None where it is no longer wanted, which is asked before each block.

    Raises
    ------
    NotReadError
        If they cannot be had without reading far more.
    """
    return _drawn(window, lambda block: read_array(subject, block), is_wanted)


@outside_modes
@np.errstate(all="ignore")
def overview_of_change(
    first: Subject, second: Subject, window: Window, is_wanted: Callable[[], bool] = _always
) -> Overview | None:
    """Return the heat map of Δ in the plane of two of one shape; its colours run from 0 to the largest pixel.

    That one is what the map is to tell, and so it is never beyond them. Each is the root mean square of its cell: by
    the largest |Δ|, a few rows that have changed would colour the whole. As `overview_of` otherwise.
    """

    def read(block: Window) -> Any:
        return sizes_of_change(read_array(first, block), read_array(second, block))

    drawn = _drawn(window, read, is_wanted, MeanBuilder)
    if drawn is None:
        return None
    pixels = drawn.heatmap.values[drawn.heatmap.flags == FINITE]
    return drawn._replace(limits=limits(drawn.heatmap, 0.0, float(pixels.max(initial=0.0))))


def _drawn(
    window: Window, read: Callable[[Window], Any], is_wanted: Callable[[], bool], build: type = HeatmapBuilder
) -> Overview | None:
    builder, ends, is_complex = build(window.plane, SIDE, SIDE), [math.inf, -math.inf], False
    for block, first_row, first_column in _blocks(window):
        if not is_wanted():
            return None
        array = read(block)
        flat, shape = np.ma.getdata(array), (block.num_rows, block.num_columns)
        if flat.dtype.kind == "c":
            is_complex = True
            flat = modulus_of(np.ascontiguousarray(flat.real), np.ascontiguousarray(flat.imag))
        values = flat.reshape(shape)
        shown = ~np.ma.getmaskarray(array).reshape(shape) if isinstance(array, np.ma.MaskedArray) else None
        builder.add(values, first_row, first_column, shown=shown)
        seen = values if shown is None else values[shown]
        low, high = _finite_ends(seen)
        ends = [min(ends[0], low), max(ends[1], high)]
    heatmap = replace(builder.finish(), is_modulus=is_complex)
    # In a mask of which each pixel has some of both, all pixels are of one value.
    is_mask = values.dtype == bool and ends[0] < ends[1]
    return Overview(heatmap, limits(heatmap, *(ends if is_mask else ())), ends[0] == ends[1])


def _finite_ends(values: Any) -> tuple[float, float]:
    """Return the least and the largest finite number; infinity and its negative where there is none."""
    if not values.size:
        return math.inf, -math.inf
    low, high = float(values.min()), float(values.max())
    # NumPy gives NaN for the extremes of numbers of which one is NaN.
    return (low, high) if math.isfinite(low) and math.isfinite(high) else _finite_ends(values[np.isfinite(values)])


def _blocks(window: Window) -> Iterator[tuple[Window, int, int]]:
    """Yield windows that cover the plane, with the row and the column of the first element of each."""
    rows, columns = window.plane
    width = min(columns, _BLOCK_NUMEL)
    height = max(_BLOCK_NUMEL // max(width, 1), 1)
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            yield _part(window, top, left, min(height, rows - top), min(width, columns - left)), top, left


def _part(window: Window, top: int, left: int, num_rows: int, num_columns: int) -> Window:
    begins: dict[Any, int] = {window.row_axis: top, window.column_axis: left}
    corner = tuple(begins.get(axis, at) for axis, at in enumerate(window.corner))
    return replace(window, corner=corner, num_rows=num_rows, num_columns=num_columns)

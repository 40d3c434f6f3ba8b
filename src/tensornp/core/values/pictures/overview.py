"""Draw the plane of a window as a heat map, along any two axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.values.blocks import Block, blocks_of
from tensornp.core.values.compare.numbers import sizes_of_change
from tensornp.core.values.pictures.heatmap import FINITE, Heatmap, HeatmapBuilder, MeanBuilder
from tensornp.core.values.pictures.limits import Limits, limits
from tensornp.core.values.shown.window import Window
from tensornp.core.values.shown.window_values import Subject, elements_in
from tensornp.core.values.sources import nbytes_unasked
from tensornp.core.values.stats.figures import modulus_of
from tensornp.core.values.stored import StoredValues

SIDE = 96
"""Pixels of a side at most."""


class Overview(NamedTuple):
    """A heat map, the limits of its colours, and whether all finite elements have one value."""

    heatmap: Heatmap
    limits: Limits
    is_one_value: bool = False


def nbytes_read(subject: Subject, window: Window) -> int:
    """Return how many bytes of elements a heat map of the plane reads."""
    return math.prod(window.plane) * subject.info.itemsize


def may_be_read_unasked(subject: Subject, nbytes: int, max_nbytes: int) -> bool:
    """Return whether so many bytes of elements may be read automatically, as for a card."""
    is_stored = type(subject.tensor) is StoredValues
    return nbytes <= max_nbytes and (is_stored or nbytes_unasked(subject.info) > 0)


def _always() -> bool:
    return True


@outside_modes
@np.errstate(all="ignore")
def overview_of(subject: Subject, window: Window, is_wanted: Callable[[], bool] = _always) -> Overview | None:
    """Return the heat map of the plane of `window`.

    Reads every element of the plane; None where it is no longer wanted, which is asked before each block.

    Raises
    ------
    NotReadError
        If they cannot be had without reading far more.
    """
    return _drawn(window, lambda block: elements_in(subject, block), is_wanted)


@outside_modes
@np.errstate(all="ignore")
def overview_of_change(
    first: Subject, second: Subject, window: Window, is_wanted: Callable[[], bool] = _always
) -> Overview | None:
    """Return the heat map of |Δ| in the plane of `window`, from 0 to the largest pixel.

    That one is what the map is to tell, and so it is never beyond them. Each is the root mean square of its cell: by
    the largest |Δ|, a few rows that have changed would colour the whole. As `overview_of` otherwise.
    """

    def read(block: Window) -> Any:
        return sizes_of_change(elements_in(first, block), elements_in(second, block))

    drawn = _drawn(window, read, is_wanted, MeanBuilder)
    if drawn is None:
        return None
    pixels = drawn.heatmap.values[drawn.heatmap.flags == FINITE]
    return drawn._replace(limits=limits(drawn.heatmap, 0.0, float(pixels.max(initial=0.0))))


def _drawn(
    window: Window, read: Callable[[Window], Any], is_wanted: Callable[[], bool], build: type = HeatmapBuilder
) -> Overview | None:
    builder, ends, is_complex = build(window.plane, SIDE, SIDE), [math.inf, -math.inf], False
    for block in blocks_of(window.plane):
        if not is_wanted():
            return None
        array = read(_part(window, block))
        flat, shape = np.ma.getdata(array), block.shape
        if flat.dtype.kind == "c":
            is_complex = True
            flat = modulus_of(flat)
        values = flat.reshape(shape)
        shown = ~np.ma.getmaskarray(array).reshape(shape) if isinstance(array, np.ma.MaskedArray) else None
        builder.add(values, *block.start, shown=shown)
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


def _part(window: Window, block: Block) -> Window:
    begins: dict[Any, int] = dict(zip((window.row_axis, window.column_axis), block.start, strict=True))
    corner = tuple(begins.get(axis, at) for axis, at in enumerate(window.corner))
    return replace(window, corner=corner, num_rows=block.shape[0], num_columns=block.shape[1])

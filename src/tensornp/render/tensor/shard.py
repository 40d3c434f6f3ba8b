"""Which part of a tensor a rank holds: in words, and in a page beside a map that is drawn to scale."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.units import counted
from tensornp.core.tensor.shards import ShardFacts, indices_held
from tensornp.render.layout.document import Document, Lines, Pictures
from tensornp.render.pictures.palette import BARS
from tensornp.render.pictures.png import img_html, palette_png

MAX_PARTS = 32
"""Parts along a side between which borders are drawn: of more, a page would show little else."""
_LONG_PX, _SHORT_PX = 97, 13
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Side(NamedTuple):
    """A side of the map, by its pixels: where there are borders, and what this rank holds."""

    axis: int | None
    is_border: Flags
    is_own: Flags
    num_parts: int


def shard_document(facts: ShardFacts) -> Document:
    """Return what a rank holds, in a sentence; a page has a map besides. No other rank is asked."""
    return Document((Pictures(lambda: _map_html(facts)), Lines((str(facts),))))


def _map_html(facts: ShardFacts) -> str:
    sides = map_sides(facts)
    if not sides:
        return ""
    pixels = map_pixels(*sides)
    words = "; ".join(_words(facts, sides))
    picture = img_html(palette_png(pixels, [(0, 0, 0), BARS]), f"map: {facts}", pixels.shape[1], pixels.shape[0])
    return f"<div>{picture}</div><div><small>{escape(words)}</small></div>"


def map_pixels(down: Side, across: Side) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return 1 where something is drawn: the borders of all parts, and this rank's, which is filled."""
    borders = down.is_border[:, None] | across.is_border
    return (borders | (down.is_own[:, None] & across.is_own)).astype(np.uint8)


def map_sides(facts: ShardFacts) -> tuple[Side, Side] | None:
    """Return the two dimensions along which a tensor is cut first; None where there is nothing to draw.

    A tensor of one dimension is a stripe. The longer side has 97 pixels, and the other one its share of that, or 13.
    """
    if facts.held is None or not facts.whole or not math.prod(facts.whole):
        return None
    cut = {
        one.dim: None
        for one, n in zip(facts.placements, facts.mesh_shape, strict=True)
        if one.dim is not None and n > 1
    }
    last = range(len(facts.whole) - 1, -1, -1)
    axes = sorted([axis for axis in dict.fromkeys([*cut, *last]) if axis is not None][:2])
    longest = max(facts.whole[axis] for axis in axes)
    sides = [_side(facts, axis, max(round(_LONG_PX * facts.whole[axis] / longest), _SHORT_PX)) for axis in axes]
    if len(sides) == 1:
        is_border = np.zeros(_SHORT_PX, bool)
        is_border[[0, -1]] = True
        sides.insert(0, Side(None, is_border, ~is_border, 1))
    return sides[0], sides[1]


def _side(facts: ShardFacts, axis: int, length: int) -> Side:
    size, is_border, is_own = facts.whole[axis], np.zeros(length, bool), np.zeros(length, bool)

    def pixel(index: int) -> int:
        return round(index * (length - 1) / size)

    every = [n for n, one in zip(facts.mesh_shape, facts.placements, strict=True) if one.dim == axis]
    is_border[[0, -1]] = True
    if math.prod(every) <= MAX_PARTS:
        is_border[[pixel(end) for end in _ends(facts, axis)]] = True
    for low, end in (facts.held or ())[axis]:
        is_own[pixel(low) : pixel(end) + 1] = True
    return Side(axis, is_border, is_own, math.prod(every))


def _ends(facts: ShardFacts, axis: int) -> Iterator[int]:
    """Yield where the parts of all ranks end along a dimension, if they are cut as this rank's is."""
    ranges = [range(n if one.dim == axis else 1) for n, one in zip(facts.mesh_shape, facts.placements, strict=True)]
    found = [
        indices_held(facts.whole, facts.mesh_shape, place, facts.placements) for place in itertools.product(*ranges)
    ]
    held = [one[axis] for one in found if one is not None]
    # What cuts them in another order is not known here.
    if (facts.held or ())[axis] in held:
        yield from (end for runs in held for _, end in runs)


def _words(facts: ShardFacts, sides: tuple[Side, Side]) -> Iterator[str]:
    """Yield what the sides of the map are, and what it does not show."""
    down, across = (side.axis for side in sides)
    names = ("rows", "columns") if len(facts.whole) == 2 else (f"axis {down}", f"axis {across}")
    yield "from left to right" if down is None else f"{names[0]} down, {names[1]} across"
    if math.prod(facts.shape):
        yield f"filled is what {facts.who} holds"
    for side in sides:
        if side.num_parts > MAX_PARTS:
            yield f"no borders of {counted(side.num_parts, 'part')} along axis {side.axis}"
    if down is not None and across is not None:
        low, high = sorted((facts.whole[down], facts.whole[across]))
        if low * _LONG_PX < high * (_SHORT_PX - 0.5):
            yield "the shorter side is drawn longer than it is"

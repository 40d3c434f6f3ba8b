"""Pictures of any size on one sheet, with an index under each, and where each of them stands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel.text import quoted
from tensornp.core.values.pictures.picture import Picture, Tile
from tensornp.errors import BadRequestError
from tensornp.render.pictures.palette import LABEL, NAN
from tensornp.render.pictures.png import MAX_MAGNIFICATION, letters, magnification

_GAP = 4
"""Clear pixels of a page between two pictures."""
_GRID_SIDE = 512
"""Pixels of a page that a grid of small pictures is magnified to at most."""
_MAX_PAGE = 2**24
"""Pixels of a page that all pictures together may take."""
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of one picture in pixels of the whole, with its index."""

    label: str
    left: int
    top: int
    width: int
    height: int


def sizes_of(picture: Picture, size: Any) -> tuple[list[tuple[int, int]], list[str]]:
    """Return the height and the width of each picture on the page, and a note if they are reduced."""
    own = [tile.pixels.shape[:2] for tile in picture.tiles]
    largest = max(height for height, _ in own), max(width for _, width in own)
    if size is None:
        both = tuple(number * side for number, side in zip(picture.grid, largest, strict=True))
        times = min(magnification(both)) if len(own) == 1 else _GRID_SIDE // max(both)
        times = max(1, min(MAX_MAGNIFICATION, times))
        return [(height * times, width * times) for height, width in own], []
    most = min(2048, int((_MAX_PAGE / len(own)) ** 0.5))
    if not isinstance(size, (int, np.integer)) or not 1 <= size <= most:
        raise BadRequestError(f"size must be an integer from 1 to {most:,} for {len(own)} pictures, got {quoted(size)}")
    shown = [(max(1, round(h * size / max(h, w))), max(1, round(w * size / max(h, w)))) for h, w in own]
    return shown, [f"reduced to {size} pixels"] if size < max(largest) else []


def laid_out(picture: Picture, sizes: Sequence[tuple[int, int]]) -> tuple[Pixels, tuple[Place, ...]]:
    """Return all pictures in one, with their indices, and where each is."""
    if len(picture.tiles) == 1 and not picture.tiles[0].label:
        height, width = sizes[0]
        pixels = _resized(_marked(picture.tiles[0]), sizes[0])
        return pixels[..., 0] if pixels.shape[-1] == 1 else pixels, (Place("", 0, 0, width, height),)
    labels = [letters(tile.label) for tile in picture.tiles]
    heights = [height + label.shape[0] for (height, _), label in zip(sizes, labels, strict=True)]
    widths = [max(width, label.shape[1]) for (_, width), label in zip(sizes, labels, strict=True)]
    columns = picture.grid[1]
    tops = _starts([max(heights[i : i + columns]) for i in range(0, len(heights), columns)])
    lefts = _starts([max(widths[i::columns]) for i in range(columns)])
    channels = 2 if all(tile.pixels.shape[-1] == 1 and not tile.is_marked.any() for tile in picture.tiles) else 4
    whole = np.zeros((tops[-1] - _GAP, lefts[-1] - _GAP, channels), np.uint8)
    places = []
    for i, (tile, (height, width), label) in enumerate(zip(picture.tiles, sizes, labels, strict=True)):
        top, left = tops[i // columns], lefts[i % columns]
        shown = _in_channels(_resized(_marked(tile), (height, width)), channels)
        whole[top : top + height, left : left + width] = shown
        below, middle = top + height, left + max(0, width - label.shape[1]) // 2
        whole[below : below + label.shape[0], middle : middle + label.shape[1]][label] = (*LABEL[: channels - 1], 255)
        places.append(Place(tile.label, left, top, width, height))
    return whole, tuple(places)


def _starts(lengths: Sequence[int]) -> list[int]:
    """Return the start of each row or column, and the end of the last."""
    return list(itertools.accumulate((length + _GAP for length in lengths), initial=0))


def _marked(tile: Tile) -> Pixels:
    """Return the pixels with those that are no number in their colour."""
    pixels = tile.pixels
    if tile.is_marked.any():
        pixels = np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] == 1 else pixels.copy()
        pixels[tile.is_marked] = (*NAN, 255)[: pixels.shape[-1]]
    return pixels


def _resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return the nearest pixels at another height and width."""
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, pixels.shape[:2], strict=True))
    return np.asarray(pixels[rows[:, None], columns])


def _in_channels(pixels: Pixels, channels: int) -> Pixels:
    """Return grey, RGB or RGBA as grey with alpha, or as RGBA."""
    if pixels.shape[-1] == channels:
        return pixels
    colours = np.repeat(pixels, channels - 1, axis=-1) if pixels.shape[-1] == 1 else pixels
    return np.concatenate([colours, np.full((*colours.shape[:-1], 1), 255, np.uint8)], axis=-1)

"""Pictures of one size on one sheet, with an index under each, and where each of them stands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel.text import quoted
from tensornp.core.values.pictures.picture import Picture
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


def size_of(picture: Picture, size: Any) -> tuple[tuple[int, int], list[str]]:
    """Return the height and the width of each picture on the page, and a note if they are reduced."""
    num, height, width, _ = picture.pixels.shape
    if size is None:
        both = picture.grid[0] * height, picture.grid[1] * width
        times = min(magnification(both)) if num == 1 else _GRID_SIDE // max(both)
        times = max(1, min(MAX_MAGNIFICATION, times))
        return (height * times, width * times), []
    most = min(2048, int((_MAX_PAGE / num) ** 0.5))
    if not isinstance(size, (int, np.integer)) or not 1 <= size <= most:
        raise BadRequestError(f"size must be an integer from 1 to {most:,} for {num} pictures, got {quoted(size)}")
    longer = max(height, width)
    shown = max(1, round(height * size / longer)), max(1, round(width * size / longer))
    return shown, [f"reduced to {size} pixels"] if size < longer else []


def laid_out(picture: Picture, size: tuple[int, int]) -> tuple[Pixels, tuple[Place, ...]]:
    """Return all pictures in one, with their indices, and where each is."""
    height, width = size
    shown = _resized(_marked(picture), size)
    if len(shown) == 1 and not picture.labels[0]:
        only = shown[0]
        return only[..., 0] if only.shape[-1] == 1 else only, (Place("", 0, 0, width, height),)
    labels, columns = [letters(label) for label in picture.labels], picture.grid[1]
    tops = _starts([height + max(label.shape[0] for label in labels)] * -(-len(labels) // columns))
    lefts = _starts([max(width, *(label.shape[1] for label in labels[i::columns])) for i in range(columns)])
    shown = _with_alpha(shown)
    whole = np.zeros((tops[-1] - _GAP, lefts[-1] - _GAP, shown.shape[-1]), np.uint8)
    places = []
    for i, (pixels, label) in enumerate(zip(shown, labels, strict=True)):
        top, left = tops[i // columns], lefts[i % columns]
        whole[top : top + height, left : left + width] = pixels
        below, middle = top + height, left + max(0, width - label.shape[1]) // 2
        colour = (*LABEL[: whole.shape[-1] - 1], 255)
        whole[below : below + label.shape[0], middle : middle + label.shape[1]][label] = colour
        places.append(Place(picture.labels[i], left, top, width, height))
    return whole, tuple(places)


def _starts(lengths: Sequence[int]) -> list[int]:
    """Return the start of each row or column, and the end of the last."""
    return list(itertools.accumulate((length + _GAP for length in lengths), initial=0))


def _marked(picture: Picture) -> Pixels:
    """Return the pixels with those that are no number in their colour."""
    pixels = picture.pixels
    if picture.is_marked.any():
        pixels = np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] == 1 else pixels.copy()
        pixels[picture.is_marked] = (*NAN, 255)[: pixels.shape[-1]]
    return pixels


def _resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return the nearest pixels at another height and width."""
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, pixels.shape[1:3], strict=True))
    return np.asarray(pixels[:, rows[:, None], columns])


def _with_alpha(pixels: Pixels) -> Pixels:
    """Return grey with alpha, or RGBA."""
    if pixels.shape[-1] == 4:
        return pixels
    return np.concatenate([pixels, np.full((*pixels.shape[:-1], 1), 255, np.uint8)], axis=-1)

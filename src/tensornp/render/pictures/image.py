"""A tensor as a picture: an object that shows anywhere, with what was done to the values said under it."""

from __future__ import annotations

import hashlib
import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from tensornp.core.lowlevel.float_errors import ignoring_float_errors
from tensornp.core.lowlevel.modes import never_compiled
from tensornp.core.values.pictures.brightness import Asked, Numbers, range_of
from tensornp.core.values.pictures.picture import Picture, Tile, picture_of
from tensornp.errors import BadRequestError
from tensornp.render.layout.style import SMALL_TEXT
from tensornp.render.pictures.palette import LABEL, NAN
from tensornp.render.pictures.png import MAX_MAGNIFICATION, img_html, letters, magnification, picture_png

_GAP = 4
"""Clear pixels of a page between two pictures."""
_GRID_SIDE = 512
"""Pixels of a page that a grid of small pictures is magnified to at most."""
_MAX_PAGE = 2**24
"""Pixels of a page that all pictures together may take."""
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where one of the pictures stands in the whole, in pixels of that; `label` is the index that leads to it."""

    label: str
    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, made once: later writes to the tensor do not change it, and it keeps no tensor alive.

    Attributes
    ----------
    png : bytes
        The picture; a small one has several pixels for each of its own, so that nothing blurs them.
    caption : str
        The layout, the size, and what was done to the values.
    size : tuple of int
        Width and height of `png`, a grid with its gaps and indices.
    places : tuple of Place
        Where each picture stands in it, with its index.
    has_frames : bool
        Whether the pictures are frames, which follow each other in time.
    """

    png: bytes = field(repr=False)
    caption: str
    size: tuple[int, int]
    places: tuple[Place, ...] = field(repr=False)
    has_frames: bool = False

    def __repr__(self) -> str:
        return f"<Image {self.size[0]} × {self.size[1]}: {self.caption}>"

    @property
    def alt(self) -> str:
        """The text that stands for the picture."""
        return f"picture: {self.caption}"

    @property
    def has_tiles(self) -> bool:
        """Whether it is a grid, with indices that are to be read on a narrow page too."""
        return len(self.places) > 1

    @property
    def anchor(self) -> str:
        """The class by which a slider finds a film in the page; empty for what is none."""
        return f"tnp-{hashlib.blake2s(self.png, digest_size=4).hexdigest()}" if self.has_frames else ""

    def _repr_html_(self) -> str:
        classes = " ".join(filter(None, ["tensornp", self.anchor]))
        shown = img_html(self.png, self.alt, *self.size, can_shrink=not self.has_tiles)
        if self.has_tiles:
            shown = f'<div style="overflow-x:auto">{shown}</div>'
        return f'<div class="{classes}">{shown}<div style="{SMALL_TEXT}">{escape(self.caption)}</div></div>'

    def _static_bundle(self) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_png_(self) -> bytes:
        return self.png

    def _mime_(self) -> tuple[str, str]:
        """Return what marimo shows."""
        return "text/html", self._repr_html_()


@never_compiled
@ignoring_float_errors
def image(
    t: Any,
    *,
    layout: str | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    value_range: tuple[float, float] | None = None,
    size: int | None = None,
) -> Image:
    """Return a tensor as a picture, or several as a grid with an index under each; the caption says how they are read.

    Parameters
    ----------
    t : torch.Tensor, an object that stands for one, numpy.ndarray, or a list or tuple of these
        Bools, integers or floats, of two to five dimensions. One channel is grey, three are RGB, four RGBA; of any
        other number, feature maps for example, each channel is a grey tile. The pictures of a list may differ in size,
        layout and dtype: each is read by itself.
    layout : {"HW", "CHW", "HWC", "NHW", "THW", "NCHW", "NHWC", "TCHW", "CTHW", "THWC", "NCTHW", "NTCHW", "NTHWC"}, \
optional
        What each dimension is: N pictures, C channels, T frames, H rows, W columns. None takes the likeliest, and the
        caption says why: channels first, as usual in torch, unless only the last dimension can be channels.
    mean, std : float or sequence of float, optional
        What was subtracted from each channel, and by what it was divided after that, as torchvision's ``Normalize``
        does: it is undone first. Alpha is not touched.
    value_range : (float, float), optional
        The values that are black and white. None shows uint8 and bool as they are, and floats from 0 to 1 too; others
        from the least to the greatest value of all pictures that are shown, without NaN and infinities. In a list,
        integers have one such range and floats another.
    size : int, optional
        How many pixels of the page the longer side of each picture takes, from 1 to 2048, by the nearest of its own,
        so that nothing is blurred. None shows each of its own as a square of one to 16 pixels, all of one size.

    Raises
    ------
    BadRequestError
        If no layout fits, or an argument means nothing.
    NotATensorError, NoDataError, UnsupportedTensorError
        As `to_numpy` does.

    Notes
    -----
    Reads the pixels that are shown, on the tensor's own device, and changes nothing: at most 64 tiles and about a
    million pixels in all. Of more pictures or channels these are the first, of a longer film every second, third…
    frame, of large ones every second, third… row and column.

    Examples
    --------
    >>> import torch
    >>> batch = torch.rand(4, 3, 32, 48, generator=torch.Generator().manual_seed(0))
    >>> tnp.image(batch).caption
    'NCHW, the only layout with 1, 3 or 4 channels · 32 × 48 RGB · 4 pictures · 0 … 1 as they are'
    >>> tnp.image(torch.zeros(16, 28, 28)).caption
    'CHW, as usual in torch · 28 × 28 grey · 16 channels, each a grey tile · 0 … 1 as they are'
    >>> tnp.image([batch[0], batch[1, 0] > 0.5], size=96).places[1]
    Place(label='1', left=100, top=0, width=96, height=64)
    """
    picture = picture_of(t, layout, Asked(mean, std, range_of(value_range)))
    sizes, words = _sizes(picture, size)
    pixels, places = _laid_out(picture, sizes)
    caption = " · ".join([*picture.words, *words])
    return Image(picture_png(pixels), caption, (pixels.shape[1], pixels.shape[0]), places, picture.has_frames)


def _sizes(picture: Picture, size: int | None) -> tuple[list[tuple[int, int]], list[str]]:
    """Return the height and the width of each picture on the page, and what is to be said of that."""
    own = [tile.pixels.shape[:2] for tile in picture.tiles]
    largest = max(height for height, _ in own), max(width for _, width in own)
    if size is None:
        both = tuple(number * side for number, side in zip(picture.grid, largest, strict=True))
        times = min(magnification(both)) if len(own) == 1 else _GRID_SIDE // max(both)
        times = max(1, min(MAX_MAGNIFICATION, times))
        return [(height * times, width * times) for height, width in own], []
    side = _side(size, len(own))
    shown = [(max(1, round(h * side / max(h, w))), max(1, round(w * side / max(h, w)))) for h, w in own]
    return shown, [f"reduced to {side} pixels"] if side < max(largest) else []


def _side(size: Any, count: int) -> int:
    try:
        side = operator.index(size)
    except TypeError:
        side = 0
    most = min(2048, int((_MAX_PAGE / count) ** 0.5))
    if not 1 <= side <= most:
        raise BadRequestError(f"size={size!r} is none for {count} pictures; pass an integer from 1 to {most:,}, pixels")
    return side


def _laid_out(picture: Picture, sizes: Sequence[tuple[int, int]]) -> tuple[Pixels, tuple[Place, ...]]:
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
    """Return where each row or column begins, and the one after the last."""
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

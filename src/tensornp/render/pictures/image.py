"""A tensor as a picture, with a caption on the changes of its values."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from tensornp.core.lowlevel.text import quoted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.values.pictures.picture import (
    MAX_ALL_PIXELS,
    MAX_PICTURES,
    Asked,
    Numbers,
    Picture,
    picture_of,
    range_of,
)
from tensornp.errors import BadRequestError, TooLargeError
from tensornp.render.layout.style import SMALL_TEXT
from tensornp.render.pictures import png
from tensornp.render.pictures.palette import LABEL, NAN

_GAP = 4
"""Clear pixels of a page between two pictures."""
_GRID_SIDE = 512
"""Pixels of a page that a grid of small pictures is magnified to at most."""
_MAX_PAGE = 2**24
"""Pixels of a page that all pictures together may take."""


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
    """

    png: bytes = field(repr=False)
    caption: str
    size: tuple[int, int]
    _pictures: np.ndarray[Any, Any] | None = field(repr=False)

    def __repr__(self) -> str:
        return f"<Image {self.size[0]} × {self.size[1]}: {self.caption}>"

    @property
    def arrays(self) -> np.ndarray[Any, Any]:
        """All pictures as a uint8 array of shape (N, H, W, C), converted as shown, at their own size.

        NaN and infinite pixels are black. Raises TooLargeError for more than 1,024 pictures or 8 million pixels:
        pass fewer, as ``tnp.image(batch[:64])``.
        """
        if self._pictures is None:
            raise TooLargeError(
                f"at most {MAX_PICTURES:,} pictures of {MAX_ALL_PIXELS:,} pixels in all are converted; pass fewer"
            )
        return self._pictures.copy()

    def pil(self) -> list[Any]:
        """Return all pictures as PIL images, converted as shown, at their own size; limits as for `arrays`."""
        return [png.pil_image(one[..., 0] if one.shape[-1] == 1 else one) for one in self.arrays]

    def _repr_html_(self) -> str:
        shown = png.img_html(self.png, "picture", *self.size)
        return f'<div class="tensornp" dir="ltr">{shown}<div style="{SMALL_TEXT}">{escape(self.caption)}</div></div>'

    def _static_bundle(self) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_png_(self) -> bytes:
        return self.png

    def _mime_(self) -> tuple[str, str]:
        return "text/html", self._repr_html_()


@never_compiled
def image(
    t: Any,
    *,
    layout: str | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    value_range: tuple[float, float] | None = None,
    size: int | None = None,
) -> Image:
    """Return a tensor as a picture, or several as a grid with an index under each.

    The caption states layout, channels and value range.

    Parameters
    ----------
    t : torch.Tensor, an object that stands for one, numpy.ndarray
        Bools, integers or floats of two to four dimensions. One channel is grey, three are RGB, four RGBA. With any
        other number of channels, each channel is a grey tile.
    layout : {"HW", "CHW", "HWC", "NHW", "NCHW", "NHWC"}, optional
        Dimensions: N pictures, C channels, H rows, W columns. None takes channels first, as usual in torch, unless only
        the last dimension can be channels. The caption gives the reason. NHW shows (3, 28, 28) as three pictures.
    mean, std : float or sequence of float, optional
        Arguments of torchvision's ``Normalize``, which is undone first, except for alpha.
    value_range : (float, float), optional
        Values of black and white. None shows uint8, bool and floats from 0 to 1 unchanged. Other values range from the
        smallest to the largest finite value of all shown pictures.
    size : int, optional
        Pixels of the longer side of each picture, from 1 to 2048, by nearest neighbour. None shows each pixel as a
        square of 1 to 16 pixels.

    Raises
    ------
    BadRequestError
        If no layout fits, or an argument is invalid.
    NotATensorError, NoDataError, UnsupportedTensorError
        As `to_numpy` does.

    Notes
    -----
    Reads the pixels on the tensor's own device, and changes nothing. At most 64 tiles and about a million pixels are
    shown: the first pictures and channels, and every second, third, … row and column of large ones. ``.arrays`` and
    ``.pil()`` have all pictures at full size, up to 1,024 pictures and 8 million pixels, in the range of all.

    Examples
    --------
    >>> import torch
    >>> batch = torch.rand(4, 3, 32, 48, generator=torch.Generator().manual_seed(0))
    >>> tnp.image(batch).caption
    'NCHW, the only layout with 1, 3 or 4 channels · 32 × 48 RGB · 4 pictures · 0 … 1 as they are'
    >>> tnp.image(torch.zeros(16, 28, 28)).caption
    'CHW, assumed as usual in torch · 28 × 28 grey · 16 channels, each a grey tile · 0 … 1 as they are'
    """
    asked = Asked(mean, std, range_of(value_range))
    picture = picture_of(t, layout, asked)
    whole = picture
    if not picture.is_whole:
        with suppress(TooLargeError):
            whole = picture_of(t, layout, asked, has_all=True)
    shown, words = size_of(picture, size)
    pixels = laid_out(picture, shown)
    caption = " · ".join([*picture.words, *words])
    pictures = whole.pixels if whole.is_whole else None
    return Image(png.picture_png(pixels), caption, (pixels.shape[1], pixels.shape[0]), pictures)


def size_of(picture: Picture, size: Any) -> tuple[tuple[int, int], list[str]]:
    """Return the height and the width of each picture on the page, and a note if they are reduced."""
    num, height, width, _ = picture.pixels.shape
    if size is None:
        both = picture.grid[0] * height, picture.grid[1] * width
        times = min(png.magnification(both)) if num == 1 else _GRID_SIDE // max(both)
        times = max(1, min(png.MAX_MAGNIFICATION, times))
        return (height * times, width * times), []
    most = min(2048, int((_MAX_PAGE / num) ** 0.5))
    if not isinstance(size, (int, np.integer)) or not 1 <= size <= most:
        raise BadRequestError(f"size must be an integer from 1 to {most:,} for {num} pictures, got {quoted(size)}")
    longer = max(height, width)
    shown = max(1, round(height * size / longer)), max(1, round(width * size / longer))
    return shown, [f"reduced to {size} pixels"] if size < longer else []


def laid_out(picture: Picture, size: tuple[int, int]) -> png.Pixels:
    """Return all pictures in one, with their indices."""
    height, width = size
    marked = _marked(picture)
    # The nearest pixels.
    ys, xs = (np.arange(new) * old // new for new, old in zip(size, marked.shape[1:3], strict=True))
    shown = np.asarray(marked[:, ys[:, None], xs])
    if len(shown) == 1 and not picture.labels[0]:
        only: png.Pixels = shown[0]
        return only[..., 0] if only.shape[-1] == 1 else only
    labels, columns = [png.letters(label) for label in picture.labels], picture.grid[1]
    tops = _starts([height + max(label.shape[0] for label in labels)] * -(-len(labels) // columns))
    lefts = _starts([max(width, *(label.shape[1] for label in labels[i::columns])) for i in range(columns)])
    if shown.shape[-1] != 4:
        shown = np.concatenate([shown, np.full((*shown.shape[:-1], 1), 255, np.uint8)], axis=-1)
    whole = np.zeros((tops[-1] - _GAP, lefts[-1] - _GAP, shown.shape[-1]), np.uint8)
    for i, (pixels, label) in enumerate(zip(shown, labels, strict=True)):
        top, left = tops[i // columns], lefts[i % columns]
        whole[top : top + height, left : left + width] = pixels
        below, middle = top + height, left + max(0, width - label.shape[1]) // 2
        colour = (*LABEL[: whole.shape[-1] - 1], 255)
        whole[below : below + label.shape[0], middle : middle + label.shape[1]][label] = colour
    return whole


def _starts(lengths: Sequence[int]) -> list[int]:
    """Return the start of each row or column, and the end of the last."""
    return list(itertools.accumulate((length + _GAP for length in lengths), initial=0))


def _marked(picture: Picture) -> png.Pixels:
    """Return the pixels with those that are no number in their colour."""
    pixels = picture.pixels
    if picture.is_marked.any():
        pixels = np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] == 1 else pixels.copy()
        pixels[picture.is_marked] = (*NAN, 255)[: pixels.shape[-1]]
    return pixels

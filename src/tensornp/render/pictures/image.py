"""A tensor as a picture: an object that shows anywhere, with what was done to the values said under it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from tensornp.core.lowlevel.float_errors import ignoring_float_errors
from tensornp.core.lowlevel.modes import never_compiled
from tensornp.core.values.pictures.picture import Numbers, Picture, picture_of
from tensornp.render.layout.style import SMALL_TEXT
from tensornp.render.pictures.palette import NAN
from tensornp.render.pictures.png import img_html, magnification, picture_png

_GAP = 2
"""Clear pixels between two pictures."""


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
        Width and height of what is shown, a grid with its gaps, in its own pixels.
    magnification : int
        How many pixels of `png`, in height and in width, one of its own takes.
    """

    png: bytes = field(repr=False)
    caption: str
    size: tuple[int, int]
    magnification: int = 1

    def __repr__(self) -> str:
        return f"<Image {self.size[0]} × {self.size[1]}: {self.caption}>"

    @property
    def alt(self) -> str:
        """The text that stands for the picture."""
        return f"picture: {self.caption}"

    def _repr_html_(self) -> str:
        width, height = (size * self.magnification for size in self.size)
        return (
            f'<div class="tensornp">{img_html(self.png, self.alt, width, height)}'
            f'<div style="{SMALL_TEXT}">{escape(self.caption)}</div></div>'
        )

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
) -> Image:
    """Return a tensor or an array as a picture, or a batch of them as a grid; its caption says how the values are read.

    Parameters
    ----------
    t : torch.Tensor, an object that stands for one, or numpy.ndarray
        Bools, integers or floats. One channel is grey, three are RGB, four RGBA.
    layout : {"HW", "CHW", "HWC", "NHW", "NCHW", "NHWC"}, optional
        What each dimension is: N pictures, C channels, H rows, W columns. None takes the one that fits, if no other
        does; a batch of grey pictures without a dimension of channels has to be named.
    mean, std : float or sequence of float, optional
        What was subtracted from each channel, and by what it was divided after that, as torchvision's ``Normalize``
        does: it is undone first. Alpha is not touched.
    value_range : (float, float), optional
        The values that are black and white. None shows uint8 and bool as they are, and floats from 0 to 1 too; others
        from the least to the greatest value of all pictures that are shown, without NaN and infinities.

    Raises
    ------
    BadRequestError
        If no layout fits or more than one does, or an argument means nothing.
    NotATensorError, NoDataError, UnsupportedTensorError
        As `to_numpy` does.

    Notes
    -----
    Reads the pixels that are shown, on the tensor's own device, and changes nothing: of a batch the first 64 pictures,
    of large ones every second, third… row and column, at most about a million pixels in all.
    """
    picture = picture_of(t, layout, mean, std, value_range)
    pixels = _grid(picture)
    height, width = pixels.shape[:2]
    times = min(magnification((height, width)))
    caption = " · ".join([*picture.layout.words, *picture.words])
    large = np.repeat(np.repeat(pixels, times, axis=0), times, axis=1)
    return Image(picture_png(large), caption, (width, height), times)


def _grid(picture: Picture) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return all pictures in one, in as few channels as its colours, gaps and marks need."""
    pixels, is_marked = picture.pixels, picture.is_marked
    if is_marked.any():
        pixels = np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] == 1 else pixels.copy()
        pixels[is_marked] = (*NAN, 255)[: pixels.shape[-1]]
    count, height, width, channels = pixels.shape
    if count == 1:
        return pixels[0, ..., 0] if channels == 1 else pixels[0]
    if channels in (1, 3):
        pixels = np.concatenate([pixels, np.full((*pixels.shape[:-1], 1), 255, np.uint8)], axis=-1)
    rows, columns = picture.layout.grid
    step = height + _GAP, width + _GAP
    whole = np.zeros((rows * step[0] - _GAP, columns * step[1] - _GAP, pixels.shape[-1]), np.uint8)
    for i, one in enumerate(pixels):
        top, left = i // columns * step[0], i % columns * step[1]
        whole[top : top + height, left : left + width] = one
    return whole

"""How the dimensions of a tensor make pictures, and which of their pixels are shown: pure functions of a shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensornp.core.lowlevel.units import format_ordinal
from tensornp.core.values.pictures.tiles import grid_of
from tensornp.errors import BadRequestError

CHANNELS = (1, 3, 4)
"""Grey, RGB, and RGB with alpha."""
MAX_PICTURES = 64
MAX_PIXELS = 2**20
"""Of all pictures together."""
MAX_SIDE = 2048
"""Of each picture."""
_READINGS = {2: ("HW",), 3: ("CHW", "HWC"), 4: ("NCHW", "NHWC")}
MIN_SIDE = 16
"""Rows and columns of what is offered as a picture unasked."""
LAYOUTS = ("HW", "CHW", "HWC", "NHW", "NCHW", "NHWC")
"""All that can be named; NHW, which any three dimensions could be, is never found unasked."""


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """What is shown of a tensor, and where.

    Attributes
    ----------
    name : str
        One letter for each dimension: N pictures, C channels, H rows, W columns.
    is_stated : bool
        Whether the caller has named it.
    shape : tuple of int
    grid : tuple of int
        In how many rows and columns the pictures are laid out.
    step : int
        Every so many-th row and column is shown.
    """

    name: str
    is_stated: bool
    shape: tuple[int, ...]
    grid: tuple[int, int] = (1, 1)
    step: int = 1

    def size(self, letter: str) -> int:
        """Return the size of a dimension, 1 where there is none."""
        return self.shape[self.name.index(letter)] if letter in self.name else 1

    @property
    def num_shown(self) -> int:
        """How many pictures are shown."""
        return min(self.size("N"), MAX_PICTURES)

    @property
    def places(self) -> list[list[int]]:
        """The indices that are read of each dimension."""
        steps = {"N": 1, "C": 1, "H": self.step, "W": self.step}
        ends = {"N": self.num_shown}
        return [
            list(range(0, ends.get(letter, size), steps[letter]))
            for letter, size in zip(self.name, self.shape, strict=True)
        ]

    @property
    def words(self) -> tuple[str, ...]:
        """What a caption says: the layout, the size, what is left out."""
        channels = {1: "grey", 3: "RGB", 4: "RGBA"}[self.size("C")]
        found = "" if self.is_stated else ", the only layout that fits"
        said = [f"{self.name}{found}", f"{self.size('H'):,} × {self.size('W'):,} {channels}"]
        if "N" in self.name:
            total, shown = self.size("N"), self.num_shown
            said.append(f"{f'the first {shown} of ' if shown < total else ''}{total:,} picture{'s' * (total != 1)}")
        if self.step > 1:
            said.append(f"every {format_ordinal(self.step)} row and column")
        return tuple(said)


def layout_of(shape: tuple[int, ...], layout: str | None = None) -> ImageLayout:
    """Return how a tensor of `shape` is shown; `layout` None takes the one that fits, where it is the only one.

    Raises
    ------
    BadRequestError
        If there is no such layout, it does not fit, none does, or more than one do.
    """
    if layout is not None and layout not in LAYOUTS:
        raise BadRequestError(f"layout={layout!r} is none; choose from {', '.join(LAYOUTS)}, or None where one fits")
    if layout is not None and not _fits(shape, layout):
        others = [f"layout={name!r}" for name in LAYOUTS if _fits(shape, name)]
        cure = f"pass {' or '.join(others)}" if others else _cure(shape)
        raise BadRequestError(f"shape {shape} is no {layout}, {_wanted(layout)}; {cure}")
    fitting = [layout] if layout else [name for name in _READINGS.get(len(shape), ()) if _fits(shape, name)]
    if len(fitting) > 1:
        raise BadRequestError(
            f"shape {shape} may be {' or '.join(fitting)}; pass {' or '.join(f'layout={name!r}' for name in fitting)}"
        )
    if not fitting:
        raise BadRequestError(f"shape {shape} is no picture; {_cure(shape)}")
    if 0 in shape:
        raise BadRequestError(f"a picture of shape {shape} has no pixels; pass one that has some")
    return _placed(ImageLayout(fitting[0], layout is not None, shape))


def looks_like_pictures(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor of `shape` is offered as a picture: with channels, and of some pixels in both ways."""
    if len(shape) < 3 or min(shape) < 1:
        # Any matrix could be one; and sizes of parts that differ are no sizes.
        return False
    try:
        layout = layout_of(shape)
    except BadRequestError:
        return False
    return min(layout.size("H"), layout.size("W")) >= MIN_SIDE


def _fits(shape: tuple[int, ...], layout: str) -> bool:
    return len(shape) == len(layout) and ("C" not in layout or shape[layout.index("C")] in CHANNELS)


def _wanted(layout: str) -> str:
    channels = ", with 1, 3 or 4 channels C" if "C" in layout else ""
    return f"which has {len(layout)} dimensions{channels}"


def _cure(shape: tuple[int, ...]) -> str:
    if len(shape) == 3:
        return "pass layout='NHW' for a batch of grey pictures, or slice it to 1, 3 or 4 channels"
    if len(shape) == 4:
        return "slice it to 1, 3 or 4 channels, in the dimension after the first, or in the last"
    return "pass two to four dimensions: rows and columns, with channels, or a batch of these"


def _placed(found: ImageLayout) -> ImageLayout:
    """Return the layout with its grid, and with a step by which it is not too large."""
    height, width, count = found.size("H"), found.size("W"), found.num_shown
    step = max(1, math.isqrt(height * width * count // MAX_PIXELS), -(-max(height, width) // MAX_SIDE))
    while -(-height // step) * -(-width // step) * count > MAX_PIXELS:
        step += 1
    grid = grid_of(count, (-(-height // step), -(-width // step)))
    return ImageLayout(found.name, found.is_stated, found.shape, grid, step)

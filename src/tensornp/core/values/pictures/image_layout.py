"""Lay out the dimensions of a tensor as pictures: pure functions of a shape."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from tensornp.core.lowlevel.text import counted, format_ordinal, quoted
from tensornp.core.values.pictures.tiles import grid_of
from tensornp.errors import BadRequestError

CHANNELS = {1: "grey", 3: "RGB", 4: "RGBA"}
"""What so many channels are together; of any other number each is a grey tile."""
MAX_TILES = 64
MAX_PIXELS = 2**20
"""Of all tiles together."""
MAX_SIDE = 2048
"""Of each tile."""
MIN_SIDE = 16
"""Rows and columns of what is offered as a picture unasked."""
_MAX_COLUMNS, _MAX_WIDTH = 16, 1024
"""Tiles side by side, and their pixels, up to which each index of an outer dimension has a row of its own."""
_READINGS = {2: ("HW",), 3: ("CHW", "HWC"), 4: ("NCHW", "NHWC")}
"""What is found unasked, the order of torch first."""
LAYOUTS = ("HW", "CHW", "HWC", "NHW", "NCHW", "NHWC")
"""All that can be named."""


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """The layout of a tensor as pictures.

    Attributes
    ----------
    name : str
        One letter for each dimension: N pictures, C channels, H rows, W columns.
    reason : str
        Why it was taken; empty where the caller has named it.
    shape : tuple of int
    counts, steps : tuple of int
        Of each dimension how many indices are shown, and every so many-th of which.
    grid : tuple of int
        In how many rows and columns the tiles are laid out.
    """

    name: str
    reason: str
    shape: tuple[int, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]
    grid: tuple[int, int]

    def size(self, letter: str) -> int:
        """Return the size of a dimension, 1 where there is none."""
        return _size(self.name, self.shape, letter)

    @property
    def places(self) -> list[list[int]]:
        """The indices that are read of each dimension."""
        return [[i * step for i in range(count)] for count, step in zip(self.counts, self.steps, strict=True)]

    @property
    def outer(self) -> str:
        """The dimensions whose indices are tiles."""
        return _outer(self.name, self.shape)

    @property
    def indices(self) -> list[tuple[int, ...]]:
        """The index of each tile in the outer dimensions of more than one index."""
        found = [place for letter, place in zip(self.name, self.places, strict=True) if letter in self.outer]
        told = [self.size(letter) > 1 for letter in self.outer]
        return [tuple(itertools.compress(index, told)) for index in itertools.product(*found)]

    @property
    def layout_words(self) -> str:
        """The layout, and why it was taken."""
        return f"{self.name}, {self.reason}" if self.reason else self.name

    @property
    def plane_words(self) -> str:
        """Rows and columns."""
        return f"{self.size('H'):,} × {self.size('W'):,}"

    @property
    def channel_words(self) -> str:
        """The colours of the channels."""
        return "grey" if "C" in self.outer else CHANNELS[self.size("C")]

    @property
    def size_words(self) -> str:
        """Rows, columns, and what the channels are."""
        return f"{self.plane_words} {self.channel_words}"

    @property
    def tile_words(self) -> str:
        """Which pictures and channels are shown; empty for one picture."""
        return ", ".join(self._which(letter) for letter in self.outer)

    @property
    def step_words(self) -> str:
        """Which rows and columns are shown; empty for all."""
        step = self.steps[self.name.index("H")]
        return f"every {format_ordinal(step)} row and column" if step > 1 else ""

    def _which(self, letter: str) -> str:
        at = self.name.index(letter)
        total, shown = self.shape[at], self.counts[at]
        first = "the first of " if shown == 1 < total else f"the first {shown} of " if shown < total else ""
        said = first + counted(total, {"N": "picture", "C": "channel"}[letter])
        return f"{said}, each a grey tile" if letter == "C" else said


def layout_of(
    shape: tuple[int, ...], layout: str | None = None, max_tiles: int = MAX_TILES, max_pixels: int = MAX_PIXELS
) -> ImageLayout:
    """Return how a tensor of `shape` is shown; `layout` None takes the likeliest, and says why.

    Raises
    ------
    BadRequestError
        If there is no such layout, it does not fit, or none does.
    """
    if layout is not None and layout not in LAYOUTS:
        raise BadRequestError(
            f"layout={quoted(layout)} is none; choose from {', '.join(LAYOUTS)}, or None for the likeliest"
        )
    if layout is not None and len(layout) != len(shape):
        others = [f"layout={name!r}" for name in LAYOUTS if len(name) == len(shape)]
        raise BadRequestError(
            f"shape {shape} is no {layout}, which has {len(layout)} dimensions; pass {' or '.join(others) or _CURE}"
        )
    if len(shape) not in _READINGS:
        raise BadRequestError(f"shape {shape} is no picture; pass {_CURE}")
    if 0 in shape:
        raise BadRequestError(f"a picture of shape {shape} has no pixels; pass one that has some")
    name, reason = (layout, "") if layout else _likeliest(shape)
    return _placed(name, reason, shape, max_tiles, max_pixels)


_CURE = "two to four dimensions: rows and columns, with channels, or a batch of these"


def looks_like_pictures(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor of `shape` is offered as a picture."""
    if len(shape) < 3 or len(shape) not in _READINGS or min(shape) < 1:
        # Any matrix could be one; and sizes of parts that differ are no sizes.
        return False
    name, _ = _likeliest(shape)
    return _has_colours(name, shape) and min(_size(name, shape, letter) for letter in "HW") >= MIN_SIDE


def _likeliest(shape: tuple[int, ...]) -> tuple[str, str]:
    """Return the layout that is taken unasked, and why.

    Channels come last only where they are fewer than rows and columns: a convolution's weight of (64, 32, 3, 3) is no
    batch of RGB.
    """
    readings = _READINGS[len(shape)]
    if len(readings) == 1:
        return readings[0], "the only layout that fits"
    fitting = [name for name in readings if _has_colours(name, shape)]
    likely = [name for name in fitting if name[-1] != "C" or min(shape[-3:-1]) > shape[-1]]
    found = likely[0] if likely else readings[0]
    if fitting == [found]:
        return found, "the only layout with 1, 3 or 4 channels"
    others = " and ".join(name for name in fitting if name != found)
    return found, f"{_AS_USUAL} ({others} {'fit' if ' ' in others else 'fits'} too)" if others else _AS_USUAL


_AS_USUAL = "assumed as usual in torch"


def _size(name: str, shape: tuple[int, ...], letter: str) -> int:
    return shape[name.index(letter)] if letter in name else 1


def _has_colours(name: str, shape: tuple[int, ...]) -> bool:
    return _size(name, shape, "C") in CHANNELS


def _outer(name: str, shape: tuple[int, ...]) -> str:
    return name.translate(dict.fromkeys(map(ord, "HWC" if _has_colours(name, shape) else "HW")))


def _placed(name: str, reason: str, shape: tuple[int, ...], max_tiles: int, max_pixels: int) -> ImageLayout:
    """Return the layout with as many tiles and pixels as fit."""
    counts, steps = dict.fromkeys(name, 1), dict.fromkeys(name, 1)
    room = max_tiles
    for letter in reversed(_outer(name, shape)):
        counts[letter] = min(room, _size(name, shape, letter))
        room //= counts[letter]
    tiles = [counts[letter] for letter in _outer(name, shape)]
    height, width = (_size(name, shape, letter) for letter in "HW")
    step = _step(height, width, max_pixels // math.prod(tiles))
    for letter, size in (("H", height), ("W", width)):
        counts[letter], steps[letter] = -(-size // step), step
    if _has_colours(name, shape) and "C" in name:
        counts["C"] = _size(name, shape, "C")
    return ImageLayout(
        name, reason, shape, tuple(map(counts.__getitem__, name)), tuple(map(steps.__getitem__, name)),
        _grid(tiles, (counts["H"], counts["W"])),
    )  # fmt: skip


def _step(height: int, width: int, max_pixels: int) -> int:
    """Return every which row and column leaves a tile that is not too large."""
    step = max(1, math.isqrt(height * width // max_pixels), -(-max(height, width) // MAX_SIDE))
    while -(-height // step) * -(-width // step) > max_pixels:
        step += 1
    return step


def _grid(tiles: list[int], plane: tuple[int, int]) -> tuple[int, int]:
    several = [count for count in tiles if count > 1]
    if len(several) > 1 and several[-1] <= min(_MAX_COLUMNS, _MAX_WIDTH // plane[1]):
        return math.prod(several[:-1]), several[-1]
    return grid_of(math.prod(tiles), plane)

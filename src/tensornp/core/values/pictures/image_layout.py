"""Lay out the dimensions of a tensor as pictures and planes: pure functions of a shape."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tensornp.core.lowlevel.text import counted, quoted
from tensornp.core.tensor.form import Places
from tensornp.core.tensor.shards import ShardFacts
from tensornp.errors import BadRequestError

Index = tuple[int, ...]


def plane_at(shape: Index, index: Sequence[int] | int | None, shard: ShardFacts | None = None) -> tuple[Index, str]:
    """Return the index of a plane, the first for None, and its title; a `shard` has both in the whole."""
    first = (0,) * len(shape[:-2])
    whole = shape if shard is None else shard.whole
    asked = first if shard is None else shard.index_in_whole(first)
    if index is not None:
        asked = _checked(index, whole)
    at = asked if shard is None else shard.index_here(asked)
    if at is None:
        raise BadRequestError(f"the plane at {list(asked)} is not on this rank: {shard}")
    sizes = " × ".join(f"{size:,}" for size in whole[:-2])
    return at, f"plane {list(asked)} of {sizes}" if sizes else ""


def _checked(index: Sequence[int] | int, shape: Index) -> Index:
    outer = shape[:-2]
    try:
        given = index if isinstance(index, Iterable) else (index,)
        at = None if isinstance(index, (str, bool)) else tuple(map(operator.index, given))
    except TypeError:
        at = None
    if at is None or len(at) != len(outer) or not all(-size <= i < size for i, size in zip(at, outer, strict=True)):
        cure = f"pass {counted(len(outer), 'integer')} within {list(outer)}" if outer else "pass None"
        raise BadRequestError(f"index {quoted(index)} leads to no plane of shape {shape}; {cure}")
    return tuple(i % size for i, size in zip(at, outer, strict=True))


def grid_of(count: int, plane: tuple[int, int]) -> tuple[int, int]:
    """Return in how many rows and columns so many planes look most like a square, the wider one of two."""
    # One pixel between two planes counts for those that are narrow.
    height, width = plane[0] + 1, plane[1] + 1
    columns = min(count, max(1, math.ceil(math.sqrt(count * height / width))))
    return -(-count // columns), columns


CHANNELS = {1: "grey", 3: "RGB", 4: "RGBA"}
"""Colours by number of channels; with any other number, each is a grey tile."""
MAX_TILES = 64
MAX_PIXELS = 2**20
MAX_SIDE = 2048
_READINGS = {2: ("HW",), 3: ("CHW", "HWC"), 4: ("NCHW", "NHWC")}
"""Layouts that are found unasked, the order of torch first."""
LAYOUTS = ("HW", "CHW", "HWC", "NHW", "NCHW", "NHWC")


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """The layout of a tensor as pictures; every `steps`-th of each dimension is shown, `counts` in all."""

    name: str
    reason: str
    shape: tuple[int, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]
    grid: tuple[int, int]

    @property
    def is_whole(self) -> bool:
        """Whether every picture and every pixel is shown."""
        return self.counts == self.shape

    @property
    def places(self) -> Places:
        return [range(0, count * step, step) for count, step in zip(self.counts, self.steps, strict=True)]

    @property
    def outer(self) -> str:
        return _outer(self.name, self.shape)

    @property
    def indices(self) -> list[tuple[int, ...]]:
        outer = [axis for axis, letter in enumerate(self.name) if letter in self.outer]
        told = [self.shape[axis] > 1 for axis in outer]
        every = itertools.product(*(self.places[axis] for axis in outer))
        return [tuple(itertools.compress(index, told)) for index in every]

    @property
    def words(self) -> tuple[str, str, str, str]:
        sizes = dict(zip(self.name, self.shape, strict=True))
        step = self.steps[self.name.index("H")]
        colours = "grey" if "C" in self.outer else CHANNELS[sizes.get("C", 1)]
        tiles = []
        for letter in self.outer:
            total, shown = sizes[letter], self.counts[self.name.index(letter)]
            first = "" if shown == total else f"the first {shown} of "
            noun = "picture" if letter == "N" else "channel"
            tiles.append(f"{first}{counted(total, noun)}{', each a grey tile' if letter == 'C' else ''}")
        return (
            ", ".join(filter(None, [self.name, self.reason])),
            f"{sizes['H']:,} × {sizes['W']:,} {colours}",
            ", ".join(tiles),
            f"1 of {step:,} rows and columns" if step > 1 else "",
        )


def layout_of(
    shape: tuple[int, ...], layout: str | None = None, max_tiles: int = MAX_TILES, max_pixels: int = MAX_PIXELS
) -> ImageLayout:
    """Return the layout of a picture; `layout` None chooses the likeliest, with the reason."""
    if layout is not None and layout not in LAYOUTS:
        raise BadRequestError(f"layout must be one of {', '.join(LAYOUTS)}, or None, got {quoted(layout)}")
    fitting = [name for name in LAYOUTS if len(name) == len(shape)]
    if not fitting or (layout is not None and layout not in fitting):
        wanted = f"{layout}, which has {len(layout)} dimensions" if layout is not None else "picture"
        any_shape = "two to four dimensions: rows and columns, with channels, or a batch of these"
        cure = " or ".join(f"layout={name!r}" for name in fitting) or any_shape
        raise BadRequestError(f"shape {shape} is no {wanted}; pass {cure}")
    if 0 in shape:
        raise BadRequestError(f"a picture of shape {shape} has no pixels; pass one that has some")
    name, reason = (layout, "") if layout else _likeliest(shape)
    return _placed(name, reason, shape, max_tiles, max_pixels)


def _likeliest(shape: tuple[int, ...]) -> tuple[str, str]:
    """Return the default layout and why; a convolution's weight of (64, 32, 3, 3) is no batch of RGB."""
    readings = _READINGS[len(shape)]
    if len(readings) == 1:
        return readings[0], "the only layout that fits"
    fitting = [name for name in readings if _has_colours(name, shape)]
    likely = [name for name in fitting if name[-1] != "C" or min(shape[-3:-1]) > shape[-1]]
    found = likely[0] if likely else readings[0]
    if fitting == [found]:
        return found, "the only layout with 1, 3 or 4 channels"
    others = " and ".join(name for name in fitting if name != found)
    return found, "assumed as usual in torch" + (f" ({others} fits too)" if others else "")


def _has_colours(name: str, shape: tuple[int, ...]) -> bool:
    return dict(zip(name, shape, strict=True)).get("C", 1) in CHANNELS


def _outer(name: str, shape: tuple[int, ...]) -> str:
    inner = "HWC" if _has_colours(name, shape) else "HW"
    return "".join(letter for letter in name if letter not in inner)


def _placed(name: str, reason: str, shape: tuple[int, ...], max_tiles: int, max_pixels: int) -> ImageLayout:
    counts, outer, room = dict(zip(name, shape, strict=True)), _outer(name, shape), max_tiles
    for letter in reversed(outer):
        counts[letter] = min(room, counts[letter])
        room //= counts[letter]
    tiles = [counts[letter] for letter in outer]
    max_pixels //= math.prod(tiles)
    height, width = counts["H"], counts["W"]
    step = max(1, math.isqrt(height * width // max_pixels), -(-max(height, width) // MAX_SIDE))
    while -(-height // step) * -(-width // step) > max_pixels:
        step += 1
    plane = -(-counts["H"] // step), -(-counts["W"] // step)
    counts |= {"H": plane[0], "W": plane[1]}
    steps = tuple(step if letter in "HW" else 1 for letter in name)
    return ImageLayout(name, reason, shape, tuple(counts.values()), steps, grid_of(math.prod(tiles), plane))

"""Make a picture of a tensor or a list of tensors; only the shown pixels are read."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.convert.plan import decide
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.tensor.weight import ONE_OR_ALL, refused, values_of
from tensornp.core.values.pictures.brightness import Asked, brightened, total_words
from tensornp.core.values.pictures.image_layout import MAX_PIXELS, MAX_TILES, ImageLayout, grid_of, layout_of
from tensornp.core.values.shown.preview import gathered
from tensornp.core.values.shown.window_values import subject_of
from tensornp.core.values.stored import StoredValues, described
from tensornp.errors import BadRequestError, NotATensorError, TensornpError, TooLargeError

MAX_PICTURES, MAX_ALL_PIXELS = 1024, 2**23
"""Pictures and pixels that are converted at full size."""
_MAX_SAID = 4
"""Different words about the pictures of a list in a caption."""


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """One picture; `is_marked` is True where a channel is NaN or infinite."""

    label: str
    pixels: np.ndarray[Any, Any]
    is_marked: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    tiles: tuple[Tile, ...]
    grid: tuple[int, int]
    words: tuple[str, ...]
    is_whole: bool


@outside_modes
@np.errstate(all="ignore")
def picture_of(obj: Any, layout: str | None = None, asked: Asked | None = None, *, has_all: bool = False) -> Picture:
    """Return the pixels of a tensor, an array or a list of these: those shown, or all if it `has_all`.

    Raises TooLargeError before anything is read if all are too many.
    """
    max_tiles, max_pixels = (MAX_PICTURES, MAX_ALL_PIXELS) if has_all else (MAX_TILES, MAX_PIXELS)
    obj = values_of(obj)
    base = next((base for base in (list, tuple) if issubclass(type(obj), base)), None)
    base = None if is_tensor_like(obj) else base
    every = [obj] if base is None else list(itertools.islice(base.__iter__(obj), max_tiles))
    if not every:
        raise BadRequestError(f"an empty {type(obj).__name__} has no picture; pass one that has some")
    layouts: list[ImageLayout] = []
    parts: list[Any] = []
    for i, one in enumerate(every):
        try:
            room = max_tiles // len(every), max_pixels // len(every)
            laid_out, values = _read(values_of(one), layout, *room, has_all=has_all)
        except TensornpError as error:
            if base is None:
                raise
            raise type(error)(f"picture {i} of the {base.__name__}: {error}") from None
        layouts.append(laid_out)
        parts.append(values)
    shown = brightened(parts, asked or Asked())
    tiles: list[Tile] = []
    for i, (laid_out, part) in enumerate(zip(layouts, shown, strict=True)):
        labels = [", ".join(map(str, index if base is None else (i, *index))) for index in laid_out.indices]
        tiles += map(Tile, labels, part.pixels, part.is_marked)
    columns = zip(*((*laid_out.words, part.words) for laid_out, part in zip(layouts, shown, strict=True)), strict=True)
    words, grid = [], layouts[0].grid
    for column in columns:
        different = list(dict.fromkeys(filter(None, column)))
        more = [f"{len(different) - _MAX_SAID:,} more"] if len(different) > _MAX_SAID else []
        words += ["; ".join([*different[:_MAX_SAID], *more])] if different else []
    words += total_words(shown)
    is_whole = all(one.is_whole for one in layouts)
    if base is not None:
        total = base.__len__(obj)
        is_whole = is_whole and len(every) == total
        first = f"the first {len(every)} of " if len(every) < total else ""
        words.insert(0, f"a {base.__name__} of {first}{counted(total, 'picture')}")
        heights, widths, _ = zip(*(one.pixels.shape for one in tiles), strict=True)
        grid = grid_of(len(tiles), (max(heights), max(widths)))
    return Picture(tuple(tiles), grid, tuple(words), is_whole)


def _read(obj: Any, layout: str | None, max_tiles: int, max_pixels: int, *, has_all: bool) -> tuple[ImageLayout, Any]:
    if not (is_tensor_like(obj) or is_array(obj) or type(obj) is StoredValues):
        raise NotATensorError(f"image takes a tensor or an array, not {refused(obj, of_model=ONE_OR_ALL)}")
    if is_array(obj) and obj.dtype.kind not in "biuf" and obj.dtype.name not in dtypes.EXTENSIONS:
        raise BadRequestError(_NO_BRIGHTNESS.format(obj.dtype))
    subject = subject_of(obj)
    if subject.num_parts:
        raise BadRequestError("a nested tensor is several arrays; pass t.unbind(), or one of these")
    if subject.shard is not None:
        decide(inspect(obj))
    if subject.plan.dtype.kind == "c":
        raise BadRequestError(_NO_BRIGHTNESS.format(described(obj).dtype))
    laid_out = layout_of(subject.shape, layout, max_tiles, max_pixels)
    if has_all and not laid_out.is_whole:
        raise TooLargeError(
            f"at most {MAX_PICTURES:,} pictures of {MAX_ALL_PIXELS:,} pixels in all are converted; pass fewer"
        )
    shown = gathered(subject.tensor, subject.info, subject.plan, laid_out.places)
    inner = [letter for letter in laid_out.name if letter not in laid_out.outer and letter not in "HW"]
    shown = shown.transpose([laid_out.name.index(letter) for letter in (*laid_out.outer, "H", "W", *inner)])
    *outer, height, width, channels = shown.shape if inner else (*shown.shape, 1)
    return laid_out, shown.reshape(math.prod(outer), height, width, channels)


_NO_BRIGHTNESS = "{} values are no brightness; pass real numbers, such as abs(), real or imag of complex ones"

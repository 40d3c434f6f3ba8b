"""Make a picture of a tensor; only the shown pixels are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.convert.plan import decide
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import ONE_OR_ALL, is_array, refused, values_of
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import counted, format_number, quoted
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.values.pictures.heatmap import Limits
from tensornp.core.values.pictures.image_layout import MAX_PIXELS, MAX_TILES, ImageLayout, layout_of
from tensornp.core.values.shown.preview import gathered
from tensornp.core.values.shown.window import subject_of
from tensornp.core.values.stored import StoredValues, described
from tensornp.errors import BadRequestError, NotATensorError, TooLargeError

_ROUNDED = 1e-5
"""Rounding of a value beyond 0 to 1 after its normalization was undone."""
Numbers = float | Sequence[float] | np.ndarray[Any, Any]
Values = np.ndarray[Any, Any]


class Asked(NamedTuple):
    """The conversion that the caller requests; the values `bounds` are black and white."""

    mean: Numbers | None = None
    std: Numbers | None = None
    bounds: tuple[float, float] | None = None

    @property
    def is_normalized(self) -> bool:
        return self.mean is not None or self.std is not None


def _brightened(values: Any, asked: Asked) -> tuple[Values, Values, tuple[str, ...]]:
    """Return values as bytes in one range, a mask of NaN and infinite pixels, and the range in words."""
    if values.dtype in (np.uint8, np.bool_) and not asked.is_normalized and asked.bounds is None:
        is_bool = values.dtype == np.bool_
        pixels = values.astype(np.uint8) * np.uint8(255) if is_bool else values
        said = "False black, True white" if is_bool else "0 … 255 as they are"
        return pixels, np.zeros(values.shape[:-1], bool), (said,)
    is_integer, num_colours = values.dtype.kind in "iu", min(values.shape[-1], 3)
    wide = values.astype(np.float64)
    colours, alpha = wide[..., :num_colours], wide[..., num_colours:]
    most, undone = 255 if is_integer else 1, ""
    if asked.is_normalized:
        colours, undone = _unnormalized(colours, asked)
    is_marked = ~np.isfinite(colours).all(axis=-1) | np.isnan(alpha).any(axis=-1)
    low, high, said = _stretch(colours[~is_marked], asked, is_integer and not asked.is_normalized)
    share = Limits(low, high).shares(colours)
    shares = np.clip(np.nan_to_num(np.concatenate([share, alpha / most], axis=-1), nan=0.0), 0, 1)
    num_beyond = int(((share < -_ROUNDED) | (share > 1 + _ROUNDED))[~is_marked].sum())
    num_marked = int(is_marked.sum())
    words = (
        " · ".join(filter(None, [undone, said, f"alpha 0 … {most}" if alpha.size else ""])),
        f"{counted(num_beyond, 'value')} beyond, shown as the nearest" if num_beyond else "",
        f"{counted(num_marked, 'pixel')} with NaN or infinite (violet)" if num_marked else "",
    )
    return (shares * 255 + 0.5).astype(np.uint8), is_marked, words


def range_of(value_range: Any) -> tuple[float, float] | None:
    if value_range is None:
        return None
    found = _floats(value_range)
    if len(found) != 2 or not np.isfinite(found).all() or found[0] >= found[1]:
        raise BadRequestError(
            f"value_range={quoted(value_range)} is no range; pass two numbers, black and white: (0, 1)"
        )
    return float(found[0]), float(found[1])


def _floats(given: Any) -> Values:
    try:
        # Torch would warn of a tensor with a gradient.
        with modes.outside_modes():
            is_one = not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0
            return np.array([float(number) for number in ([given] if is_one else given)])
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return np.empty(0)


def _unnormalized(colours: Values, asked: Asked) -> tuple[Values, str]:
    means = _channel_numbers("mean", asked.mean, 0.0, colours)
    stds = _channel_numbers("std", asked.std, 1.0, colours)
    if not stds.all():
        raise BadRequestError(f"std={quoted(asked.std)} would have divided by 0; pass what the values were divided by")
    mean, std = (", ".join([format_number(float(number)) for number in given]) for given in (means, stds))
    return colours * stds + means, f"mean {mean} and std {std} undone"


def _stretch(shown: Values, asked: Asked, is_integer: bool) -> tuple[float, float, str]:
    """Return the values of black and white, and both in words."""
    if asked.bounds is not None:
        low, high = asked.bounds
        return low, high, f"{format_number(low)} … {format_number(high)} shown as black … white, as asked"
    if not shown.size:
        return 0.0, 1.0, "no finite value is shown"
    low, high = float(shown.min()), float(shown.max())
    margin = _ROUNDED if asked.is_normalized else 0.0
    if not is_integer and -margin <= low and high <= 1 + margin:
        return 0.0, 1.0, "0 … 1 as they are"
    if low == high:
        return low, high, f"all {format_number(low)}, shown as grey"
    ends = f"{format_number(low)} … {format_number(high)}"
    return low, high, f"{ends}, the least and the greatest shown, as black … white"


def _channel_numbers(name: str, given: Numbers | None, default: float, colours: Values) -> Values:
    found, num = _floats(default if given is None else given), colours.shape[-1]
    if len(found) not in (1, num) or not np.isfinite(found).all():
        each = f", or one for each of {num} channels" if num > 1 else ""
        raise BadRequestError(f"{name}={quoted(given)} does not fit; pass a number{each}")
    return found


MAX_PICTURES, MAX_ALL_PIXELS = 1024, 2**23
"""Pictures and pixels that are converted at full size."""


class Picture(NamedTuple):
    """The pixels (tiles × height × width × channels), and a label for each tile; NaN and Inf are marked."""

    labels: tuple[str, ...]
    pixels: Values
    is_marked: Values
    grid: tuple[int, int]
    words: tuple[str, ...]
    is_whole: bool


@outside_modes
@np.errstate(all="ignore")
def picture_of(obj: Any, layout: str | None = None, asked: Asked | None = None, *, has_all: bool = False) -> Picture:
    """Return the pixels of a tensor or an array: those shown, or all if it `has_all`.

    Raises TooLargeError before anything is read if all are too many.
    """
    laid_out, values = _read(values_of(obj), layout, has_all=has_all)
    pixels, is_marked, said = _brightened(values, asked or Asked())
    labels = tuple([", ".join(map(str, index)) for index in laid_out.indices])
    words = tuple(filter(None, (*laid_out.words, *said)))
    return Picture(labels, pixels, is_marked, laid_out.grid, words, laid_out.is_whole)


def _read(obj: Any, layout: str | None, *, has_all: bool) -> tuple[ImageLayout, Any]:
    max_tiles, max_pixels = (MAX_PICTURES, MAX_ALL_PIXELS) if has_all else (MAX_TILES, MAX_PIXELS)
    if not (is_tensor_like(obj) or is_array(obj) or type(obj) is StoredValues):
        raise NotATensorError(f"image takes a tensor or an array, not {refused(obj, of_model=ONE_OR_ALL)}")
    subject = subject_of(obj)
    if subject.shard is not None:
        decide(inspect(obj))
    if subject.plan.dtype.kind == "c":
        cure = "pass real numbers, such as abs(), real or imag of complex ones"
        raise BadRequestError(f"{described(obj).dtype} values are no brightness; {cure}")
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

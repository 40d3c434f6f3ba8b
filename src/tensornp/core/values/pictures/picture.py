"""Make a picture of a tensor or a list of tensors; only the shown pixels are read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.convert.plan import decide
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import counted, format_number, quoted
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.tensor.weight import ONE_OR_ALL, refused, values_of
from tensornp.core.values.pictures.heatmap import Limits
from tensornp.core.values.pictures.image_layout import MAX_PIXELS, MAX_TILES, ImageLayout, grid_of, layout_of
from tensornp.core.values.shown.preview import gathered
from tensornp.core.values.shown.window_values import subject_of
from tensornp.core.values.stored import StoredValues, described
from tensornp.errors import BadRequestError, NotATensorError, TensornpError, TooLargeError

_ROUNDED = 1e-5
"""Rounding of a value beyond 0 to 1 after its normalization was undone."""
Numbers = float | Sequence[float] | np.ndarray[Any, Any]
Values = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """The conversion that the caller requests; the values `bounds` are black and white."""

    mean: Numbers | None = None
    std: Numbers | None = None
    bounds: tuple[float, float] | None = None

    @property
    def is_normalized(self) -> bool:
        return self.mean is not None or self.std is not None


@dataclass(frozen=True, slots=True, eq=False)
class Bright:
    """Bytes of tiles × height × width × channels; `is_marked` where a channel is NaN or infinite."""

    pixels: Values
    is_marked: Values
    words: str
    num_beyond: int = 0


def brightened(parts: Sequence[Any], asked: Asked) -> list[Bright]:
    """Return values of tiles × height × width × channels as bytes, all floats in one range."""
    is_plain = not asked.is_normalized and asked.bounds is None
    others = [None if is_plain and part.dtype in (np.uint8, np.bool_) else _colours(part, asked) for part in parts]
    low, high, said = _stretch([one for one in others if one is not None], asked)
    shown, limits = [], Limits(low, high)
    for part, one in zip(parts, others, strict=True):
        if one is not None:
            share = limits.shares(one.colours)
            num_beyond = int(((share < -_ROUNDED) | (share > 1 + _ROUNDED))[~one.is_marked].sum())
            shares = np.clip(np.nan_to_num(np.concatenate([share, one.alpha], axis=-1), nan=0.0), 0, 1)
            pixels = (shares * 255 + 0.5).astype(np.uint8)
            words = " · ".join(filter(None, [one.undone, said, one.opaque]))
            shown.append(Bright(pixels, one.is_marked, words, num_beyond))
            continue
        is_bool = part.dtype == np.bool_
        pixels = part.astype(np.uint8) * np.uint8(255) if is_bool else part
        shown.append(
            Bright(
                pixels, np.zeros(part.shape[:-1], bool), "False black, True white" if is_bool else "0 … 255 as they are"
            )
        )
    return shown


def total_words(shown: Sequence[Bright]) -> list[str]:
    num_beyond, num_marked = sum(one.num_beyond for one in shown), sum(int(one.is_marked.sum()) for one in shown)
    return [
        *([f"{counted(num_beyond, 'value')} beyond, shown as the nearest"] if num_beyond else []),
        *([f"{counted(num_marked, 'pixel')} with NaN or infinite (violet)"] if num_marked else []),
    ]


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


class _Colours(NamedTuple):
    """Values before black and white are found; alpha is a share already."""

    colours: Values
    alpha: Values
    is_marked: Values
    is_integer: bool
    undone: str
    opaque: str


def _colours(part: Any, asked: Asked) -> _Colours:
    is_integer = part.dtype.kind in "iu"
    values = part.astype(np.float64)
    colours, alpha = (values[..., :3], values[..., 3:]) if values.shape[-1] == 4 else (values, values[..., :0])
    most, undone = 255 if is_integer else 1, ""
    alpha, opaque = alpha / most, f"alpha 0 … {most}" if alpha.size else ""
    if asked.is_normalized:
        means = _channel_numbers("mean", asked.mean, 0.0, colours)
        stds = _channel_numbers("std", asked.std, 1.0, colours)
        if not stds.all():
            raise BadRequestError(
                f"std={quoted(asked.std)} would have divided by 0; pass what the values were divided by"
            )
        colours, is_integer = colours * stds + means, False
        undone = f"mean {_list_text(means)} and std {_list_text(stds)} undone"
    finite = np.isfinite(colours)
    is_marked = np.isnan(alpha).any(axis=-1)
    if not finite.all():
        is_marked |= ~finite.all(axis=-1)
    return _Colours(colours, alpha, is_marked, is_integer, undone, opaque)


def _stretch(parts: list[_Colours], asked: Asked) -> tuple[float, float, str]:
    if asked.bounds is not None:
        low, high = asked.bounds
        return low, high, f"{format_number(low)} … {format_number(high)} shown as black … white, as asked"
    shown = [one.colours[~one.is_marked] if one.is_marked.any() else one.colours for one in parts]
    finite = [values for values in shown if values.size]
    if not finite:
        return 0.0, 1.0, "no finite value is shown"
    low, high = min(float(values.min()) for values in finite), max(float(values.max()) for values in finite)
    margin = _ROUNDED if asked.is_normalized else 0.0
    if not any(one.is_integer for one in parts) and -margin <= low and high <= 1 + margin:
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


def _list_text(numbers: Values) -> str:
    return ", ".join(format_number(float(number)) for number in numbers)


MAX_PICTURES, MAX_ALL_PIXELS = 1024, 2**23
"""Pictures and pixels that are converted at full size."""


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
        words += ["; ".join(different)] if different else []
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

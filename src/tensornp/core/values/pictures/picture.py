"""A tensor as a picture: the pixels that are shown, read where it lies, and what was done to its values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.convert.plan import decide
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.lowlevel.units import counted, format_number
from tensornp.core.memory.arrays import check_array
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.indexing import Places
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.tensor.weight import ONE_OR_ALL, refused, values_of
from tensornp.core.values.pictures.image_layout import ImageLayout, layout_of
from tensornp.core.values.pictures.limits import Limits
from tensornp.core.values.reading.stored import StoredValues
from tensornp.core.values.shown.preview import gathered, what_it_stands_for
from tensornp.errors import BadRequestError, NoDataError, NotATensorError, NotReadError

_ROUNDED = 1e-5
"""By how much a value that was taken back from its normalization may miss the range from 0 to 1."""
Numbers = float | Sequence[float] | np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What is shown of a tensor.

    Attributes
    ----------
    pixels : numpy.ndarray
        uint8, of pictures × height × width × channels.
    is_marked : numpy.ndarray
        bool, of pictures × height × width: where a channel is NaN, infinite or hidden by a mask.
    layout : ImageLayout
    words : tuple of str
        What a caption says of the values.
    """

    pixels: np.ndarray[Any, Any]
    is_marked: np.ndarray[Any, Any]
    layout: ImageLayout
    words: tuple[str, ...]


@unnoticed
def picture_of(
    obj: Any,
    layout: str | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    value_range: tuple[float, float] | None = None,
) -> Picture:
    """Return the pixels of a tensor or an array; only those that are shown are read, and nothing is changed.

    Raises as `tensornp.image` does, which says what the arguments mean.
    """
    obj = values_of(obj)
    is_tensor = is_tensor_like(obj) or isinstance(obj, StoredValues)
    if not is_tensor and not is_array(obj):
        raise NotATensorError(f"image takes a tensor or an array, not {refused(obj, of_model=ONE_OR_ALL)}")
    reading = _tensor_reading(obj) if is_tensor else _array_reading(np.ndarray.view(obj, np.ndarray))
    shape, dtype, read = reading
    if dtype.kind not in "biuf" and dtype.name not in dtypes.EXTENSIONS:
        cure = "pass its abs(), real or imag" if dtype.kind == "c" else "pass bools, integers or floats"
        raise BadRequestError(f"{dtype} values are no brightness; {cure}")
    laid_out = layout_of(shape, layout)
    bounds = _range_of(value_range)
    shown = read(laid_out.places)
    if is_array(obj) and isinstance(obj, np.ma.MaskedArray):
        shown = np.ma.MaskedArray(shown, np.ma.getmaskarray(obj)[np.ix_(*laid_out.places)])
    return _picture(_channels_last(shown, laid_out.name), laid_out, mean, std, bounds)


def _tensor_reading(tensor: Any) -> tuple[tuple[int, ...], np.dtype[Any], Any]:
    info = tensor.info if isinstance(tensor, StoredValues) else inspect(tensor)
    plan = decide(info)
    if info.kind.gives_several:
        raise BadRequestError("a nested tensor is several arrays; pass one of t.unbind()")

    def read(places: Places) -> Any:
        try:
            if isinstance(tensor, StoredValues):
                return gathered(tensor, info, plan, places)
            return gathered(*what_it_stands_for(tensor, info), plan, places)
        except NotReadError as reason:
            raise NoDataError(str(reason)) from None

    return info.array_shape, plan.dtype, read


def _array_reading(array: np.ndarray[Any, Any]) -> tuple[tuple[int, ...], np.dtype[Any], Any]:
    check_array(array)
    return array.shape, array.dtype, lambda places: array[np.ix_(*places)]


def _channels_last(shown: Any, layout: str) -> Any:
    """Return values of pictures × height × width × channels."""
    order = [layout.index(letter) for letter in "NHWC" if letter in layout]
    shown = shown.transpose(order)
    shown = shown if "N" in layout else shown[None]
    return shown if "C" in layout else shown[..., None]


def _picture(
    values: Any, layout: ImageLayout, mean: Numbers | None, std: Numbers | None, bounds: tuple[float, float] | None
) -> Picture:
    """Return the pixels, with what was done to the values in words."""
    is_hidden: np.ndarray[Any, Any] = np.asarray(np.ma.getmaskarray(values).any(axis=-1))
    values = np.asarray(np.ma.getdata(values))
    is_plain = mean is None and std is None and bounds is None
    if values.dtype in (np.uint8, np.bool_) and is_plain:
        pixels = values if values.dtype == np.uint8 else values.astype(np.uint8) * np.uint8(255)
        said = "0 … 255 as they are" if values.dtype == np.uint8 else "False black, True white"
        return Picture(pixels, is_hidden, layout, (said, *_marked_words(is_hidden)))
    words: list[str] = []
    is_integer = values.dtype.kind in "iu"
    opaque = 255.0 if is_integer else 1.0
    values = values.astype(np.float64)
    colours, alpha = (values[..., :3], values[..., 3:]) if values.shape[-1] == 4 else (values, values[..., :0])
    if mean is not None or std is not None:
        means, stds = _channel_numbers(mean, 0.0, "mean", colours), _channel_numbers(std, 1.0, "std", colours)
        if not (stds != 0).all():
            raise BadRequestError(f"std={std!r} would have divided by 0; pass what the values were divided by")
        colours, is_integer = colours * stds + means, False
        words.append(f"mean {_list_text(means)} and std {_list_text(stds)} undone")
    is_marked = ~np.isfinite(colours).all(axis=-1) | np.isnan(alpha).any(axis=-1)
    low, high, said = _stretch(colours[~(is_marked | is_hidden)], bounds, is_integer, bool(words))
    share = Limits(low, high).shares(colours)
    pixels = _bytes(np.concatenate([share, alpha / opaque], axis=-1))
    num_beyond = int(((share < -_ROUNDED) | (share > 1 + _ROUNDED))[~(is_marked | is_hidden)].sum())
    words += [said, *([f"{counted(num_beyond, 'value')} beyond, shown as the nearest"] if num_beyond else [])]
    words += [f"alpha 0 … {opaque:g}"] if alpha.size else []
    return Picture(pixels, is_marked | is_hidden, layout, (*words, *_marked_words(is_marked | is_hidden)))


def _stretch(
    finite: np.ndarray[Any, Any], bounds: tuple[float, float] | None, is_integer: bool, is_undone: bool
) -> tuple[float, float, str]:
    """Return the values that are black and white, and in words why."""
    if bounds is not None:
        return *bounds, f"{format_number(bounds[0])} … {format_number(bounds[1])} shown as black … white, as asked"
    if not finite.size:
        return 0.0, 1.0, "no finite value"
    low, high = float(finite.min()), float(finite.max())
    margin = _ROUNDED if is_undone else 0.0
    if not is_integer and -margin <= low and high <= 1 + margin:
        return 0.0, 1.0, "0 … 1 as they are"
    if low == high:
        return low, high, f"all {format_number(low)}, shown as grey"
    return (
        low,
        high,
        f"{format_number(low)} … {format_number(high)}, the least and the greatest shown, as black … white",
    )


def _bytes(share: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(np.clip(np.nan_to_num(share, nan=0.0), 0, 1) * 255 + 0.5).astype(np.uint8)


def _marked_words(is_marked: np.ndarray[Any, Any]) -> list[str]:
    count = int(is_marked.sum())
    return [f"{count:,} pixel{'s' * (count != 1)} with NaN, infinite or hidden (violet)"] if count else []


def _channel_numbers(
    numbers: Numbers | None, default: float, name: str, colours: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    given: Any = default if numbers is None else numbers
    try:
        # One by one, since NumPy would lock the memory of a tensor.
        found = np.array([float(number) for number in (given if hasattr(given, "__len__") else [given])])
    except (TypeError, ValueError, RuntimeError):
        found = np.empty(0)
    if len(found) not in (1, colours.shape[-1]) or not np.isfinite(found).all():
        raise BadRequestError(
            f"{name}={numbers!r} does not fit; pass a number, or one for each of {colours.shape[-1]} channels"
        )
    return found


def _range_of(value_range: Any) -> tuple[float, float] | None:
    if value_range is None:
        return None
    try:
        low, high = (float(bound) for bound in value_range)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise BadRequestError(f"value_range={value_range!r} is no range; pass two numbers, black and white: (0, 1)")
    return low, high


def _list_text(numbers: np.ndarray[Any, Any]) -> str:
    return ", ".join(format_number(float(number)) for number in numbers)

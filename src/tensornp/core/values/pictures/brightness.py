"""Convert values of pictures to bytes, and describe the conversion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.text import counted, format_number, quoted
from tensornp.core.values.pictures.limits import Limits
from tensornp.errors import BadRequestError

_ROUNDED = 1e-5
"""By how much a value that was taken back from its normalization may miss the range from 0 to 1."""
Numbers = float | Sequence[float] | np.ndarray[Any, Any]
Values = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """The conversion that the caller requests.

    Attributes
    ----------
    mean, std : float or sequence of float, optional
        What was subtracted from each channel, and by what it was divided after that.
    bounds : tuple of float, optional
        The values that are black and white.
    """

    mean: Numbers | None = None
    std: Numbers | None = None
    bounds: tuple[float, float] | None = None

    @property
    def is_normalized(self) -> bool:
        """Whether a normalization is to be undone."""
        return self.mean is not None or self.std is not None


@dataclass(frozen=True, slots=True, eq=False)
class Bright:
    """Values as they are shown.

    Attributes
    ----------
    pixels : numpy.ndarray
        uint8, of tiles × height × width × channels.
    is_marked : numpy.ndarray
        bool, of tiles × height × width: where a channel is NaN, infinite or hidden by a mask.
    words : str
        How black and white were found.
    num_beyond : int
        Values that lie beyond these.
    """

    pixels: Values
    is_marked: Values
    words: str
    num_beyond: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Colours:
    """Values before black and white are found; alpha is a share already."""

    colours: Values
    alpha: Values
    is_marked: Values
    is_integer: bool
    undone: str
    opaque: str

    @property
    def finite(self) -> Values:
        return np.asarray(self.colours[~self.is_marked])


def brightened(parts: Sequence[Any], asked: Asked) -> list[Bright]:
    """Return values of tiles × height × width × channels as bytes.

    Bytes and bools stay as they are; all other parts share one range.
    """
    is_plain = not asked.is_normalized and asked.bounds is None
    found: dict[int, Bright] = {}
    others: dict[int, _Colours] = {}
    for i, part in enumerate(parts):
        if is_plain and part.dtype in (np.uint8, np.bool_):
            found[i] = _as_it_is(part)
        else:
            others[i] = _colours(part, asked)
    is_integer = any(one.is_integer for one in others.values())
    low, high, said = _stretch([one.finite for one in others.values()], asked, is_integer=is_integer)
    found |= {i: _stretched(one, low, high, said) for i, one in others.items()}
    return [found[i] for i in range(len(parts))]


def total_words(shown: Sequence[Bright]) -> list[str]:
    """Return how many values lie beyond, and how many pixels are marked."""
    num_beyond, num_marked = sum(one.num_beyond for one in shown), sum(int(one.is_marked.sum()) for one in shown)
    return [
        *([f"{counted(num_beyond, 'value')} beyond, shown as the nearest"] if num_beyond else []),
        *([f"{counted(num_marked, 'pixel')} with NaN, infinite or hidden (violet)"] if num_marked else []),
    ]


def range_of(value_range: Any) -> tuple[float, float] | None:
    """Return the two values, once they are a range."""
    if value_range is None:
        return None
    try:
        low, high = _floats(value_range)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise BadRequestError(
            f"value_range={quoted(value_range)} is no range; pass two numbers, black and white: (0, 1)"
        )
    return low, high


def _floats(given: Iterable[Any]) -> list[float]:
    """Return numbers, such as a tensor's, one by one, since NumPy would lock its memory."""
    # Of one that has a gradient torch would warn otherwise.
    with modes.outside_modes():
        return [float(number) for number in given]


def _as_it_is(part: Any) -> Bright:
    values = np.asarray(np.ma.getdata(part))
    pixels = values if values.dtype == np.uint8 else values.astype(np.uint8) * np.uint8(255)
    said = "0 … 255 as they are" if values.dtype == np.uint8 else "False black, True white"
    return Bright(pixels, _hidden(part), said)


def _hidden(part: Any) -> Values:
    return np.asarray(np.ma.getmaskarray(part).any(axis=-1))


def _colours(part: Any, asked: Asked) -> _Colours:
    is_integer = part.dtype.kind in "iu"
    opaque = 255.0 if is_integer else 1.0
    values = np.asarray(np.ma.getdata(part)).astype(np.float64)
    colours, alpha = (values[..., :3], values[..., 3:]) if values.shape[-1] == 4 else (values, values[..., :0])
    undone = ""
    if asked.is_normalized:
        means, stds = (_channel_numbers(asked, name, colours.shape[-1]) for name in ("mean", "std"))
        if not (stds != 0).all():
            raise BadRequestError(
                f"std={quoted(asked.std)} would have divided by 0; pass what the values were divided by"
            )
        colours, is_integer = colours * stds + means, False
        undone = f"mean {_list_text(means)} and std {_list_text(stds)} undone"
    is_marked = ~np.isfinite(colours).all(axis=-1) | np.isnan(alpha).any(axis=-1) | _hidden(part)
    said = f"alpha 0 … {opaque:g}" if alpha.size else ""
    return _Colours(colours, alpha / opaque, is_marked, is_integer, undone, said)


def _stretched(one: _Colours, low: float, high: float, said: str) -> Bright:
    share = Limits(low, high).shares(one.colours)
    num_beyond = int(((share < -_ROUNDED) | (share > 1 + _ROUNDED))[~one.is_marked].sum())
    words = " · ".join(filter(None, [one.undone, said, one.opaque]))
    return Bright(_bytes(np.concatenate([share, one.alpha], axis=-1)), one.is_marked, words, num_beyond)


def _stretch(finite: list[Values], asked: Asked, *, is_integer: bool) -> tuple[float, float, str]:
    """Return the values that are black and white, and in words why."""
    if asked.bounds is not None:
        low, high = asked.bounds
        return low, high, f"{format_number(low)} … {format_number(high)} shown as black … white, as asked"
    finite = [values for values in finite if values.size]
    if not finite:
        return 0.0, 1.0, "no finite value is shown"
    low, high = min(float(values.min()) for values in finite), max(float(values.max()) for values in finite)
    margin = _ROUNDED if asked.is_normalized else 0.0
    if not is_integer and -margin <= low and high <= 1 + margin:
        return 0.0, 1.0, "0 … 1 as they are"
    if low == high:
        return low, high, f"all {format_number(low)}, shown as grey"
    ends = f"{format_number(low)} … {format_number(high)}"
    return low, high, f"{ends}, the least and the greatest shown, as black … white"


def _bytes(share: Values) -> Values:
    return np.asarray(np.clip(np.nan_to_num(share, nan=0.0), 0, 1) * 255 + 0.5).astype(np.uint8)


def _channel_numbers(asked: Asked, name: str, num_channels: int) -> Values:
    numbers = {"mean": asked.mean, "std": asked.std}[name]
    given: Any = {"mean": 0.0, "std": 1.0}[name] if numbers is None else numbers
    try:
        is_one = not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0
        found = np.array(_floats([given] if is_one else given))
    except (TypeError, ValueError, RuntimeError, OverflowError):
        found = np.empty(0)
    if len(found) not in (1, num_channels) or not np.isfinite(found).all():
        each = f", or one for each of {num_channels} channels" if num_channels > 1 else ""
        raise BadRequestError(f"{name}={quoted(numbers)} does not fit; pass a number{each}")
    return found


def _list_text(numbers: Values) -> str:
    return ", ".join(format_number(float(number)) for number in numbers)

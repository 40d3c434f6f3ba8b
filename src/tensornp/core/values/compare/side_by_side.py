"""The same window on two tensors, and on what lies between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensornp.core.lowlevel.text import format_number
from tensornp.core.values.compare.numbers import differing, of_one_kind
from tensornp.core.values.shown.digits import DIGITS
from tensornp.core.values.shown.window import Window
from tensornp.core.values.shown.window_values import Seen, Subject, elements_in, shades_of

# Some of its functions have no types.
_ma: Any = np.ma


def side_by_side(first: Subject, second: Subject, window: Window, digits: int = DIGITS) -> tuple[Seen, Seen, Seen]:
    """Return two tensors in a window on one scale, and their difference on another.

    Reads the elements of the window alone, on their own devices; raises as `read_window`.
    """
    if not window.numel:
        nothing = Seen([], [], [], (0.0, 0.0))
        return nothing, nothing, nothing
    a, b = elements_in(first, window), elements_in(second, window)
    shades, scale = shades_of(_ma.concatenate([_number(a), _number(b)]))
    difference = _difference(a, b)
    return (
        Seen(_texts(a, digits), [], shades[: a.size], scale),
        Seen(_texts(b, digits), [], shades[a.size :], scale),
        Seen(_texts(difference, digits, sign="+"), [], *shades_of(_number(difference))),
    )


def _number(values: Any) -> Any:
    """Return float64 or complex128 numbers."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


@np.errstate(all="ignore")
def _difference(a: Any, b: Any) -> Any:
    """Return the second less the first; of integers exactly, beside others as `compare` has it."""
    if all(values.dtype.kind in "iub" for values in (a, b)):
        return b.astype(object) - a.astype(object)
    hidden = np.ma.getmaskarray(a) | np.ma.getmaskarray(b)
    old, new = of_one_kind(*(_wide(np.ma.getdata(values)) for values in (a, b)))
    # Two equal infinities have no difference, nor have two NaN.
    return _ma.masked_array(np.where(differing(old, new), new - old, 0), hidden)


def _wide(values: Any) -> Any:
    """Return floats in a dtype wide enough for differences; bools as numbers."""
    if values.dtype.kind == "c":
        return values.astype(np.complex128)
    return values if values.dtype.kind in "iu" else values.astype(np.float64)


def _texts(values: Any, digits: int, sign: str = "") -> list[str]:
    hidden = np.ma.getmaskarray(values)
    numbers = np.ma.getdata(values).tolist()
    return ["--" if is_hidden else _text(one, digits, sign) for one, is_hidden in zip(numbers, hidden, strict=True)]


def _text(value: Any, digits: int, sign: str) -> str:
    if isinstance(value, int):
        text = str(value).replace("-", "−")
    else:
        text = format_number(value, digits)
    return sign + text if sign and not isinstance(value, complex) and value > 0 else text

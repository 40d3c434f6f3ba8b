"""Write the numbers of a table in few digits; a column has the same decimals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

DIGITS = 4
"""Significant digits."""
_NARROW, _LEAST_FIXED = -2, -3
"""The powers of ten of columns that have no more decimals than digits, and of the last ones without an exponent."""


def column_texts(array: Any, num_columns: int, digits: int) -> list[str]:
    """Return each element of a flat array, the rows of a table one after another, as a short text.

    The largest of a column has so many significant digits, or one less; columns within a decade of the largest one
    have its decimals, so that a matrix of weights looks even. Decimals that say nothing are left out, and a hidden
    element is ``--``. Integers are whole.
    """
    values, hidden = np.ma.getdata(array), np.ma.getmaskarray(array)
    if values.dtype.kind not in "fc":
        return ["--" if is_hidden else str(value) for value, is_hidden in zip(values, hidden, strict=True)]
    shown = np.where(hidden, values.dtype.type(0), values).reshape(-1, num_columns)
    parts = [shown.real, shown.imag] if shown.dtype.kind == "c" else [shown]
    texts = [_in_columns(part, digits) for part in parts]
    numbers = texts[0] if len(texts) == 1 else [_complex(*both) for both in zip(*texts, strict=True)]
    return ["--" if is_hidden else text for text, is_hidden in zip(numbers, hidden, strict=True)]


def _in_columns(table: np.ndarray[Any, Any], digits: int) -> list[str]:
    """Return the texts of a table of floats, row by row."""
    with np.errstate(all="ignore"):
        sizes = np.abs(table.astype(np.float64))
    largest = np.where(np.isfinite(sizes), sizes, 0).max(axis=0)
    of_all = _power(float(largest.max()))
    powers = [of_all if _power(float(size)) >= of_all - 1 else _power(float(size)) for size in largest]
    columns = [_column(column, power, digits) for column, power in zip(table.T, powers, strict=True)]
    return [text for row in zip(*columns, strict=True) for text in row]


def _power(size: float) -> int:
    """Return the power of ten of a number, 0 of 0."""
    return math.floor(math.log10(size)) if size else 0


def _column(column: np.ndarray[Any, Any], power: int, digits: int) -> list[str]:
    if not _LEAST_FIXED <= power < digits + 2:
        return [_text(value, None, digits) for value in column.tolist()]
    # One digit less from 0.01 on, which keeps matrices of weights narrow.
    most = digits if power == _NARROW else max(digits - 1 - power, 0)
    decimals = next((fewer for fewer in range(most) if _are_told(column, fewer)), most)
    return [_text(value, decimals, digits) for value in column.tolist()]


def _are_told(column: np.ndarray[Any, Any], decimals: int) -> bool:
    """Return whether so many decimals tell all finite numbers of a column exactly."""
    finite = column[np.isfinite(column)]
    with np.errstate(all="ignore"):
        return bool((np.round(finite.astype(np.float64), decimals).astype(column.dtype) == finite).all())


def _text(value: float, decimals: int | None, digits: int) -> str:
    if not math.isfinite(value):
        return _signed(str(value))
    if not value:
        return "0" if math.copysign(1, value) > 0 else "−0"
    fixed = "" if decimals is None else f"{value:.{decimals}f}"
    if fixed and float(fixed):
        return _signed(fixed)
    # Among larger ones, it has the digits for which there is room.
    mantissa, power = f"{value:.{max(digits - (3 if fixed else 1), 0)}e}".split("e")
    return _signed(f"{mantissa}e{int(power)}")


def _signed(text: str) -> str:
    return text.replace("-", "−")


def _complex(real: str, imaginary: str) -> str:
    return f"{real}{imaginary if imaginary[0] == '−' else f'+{imaginary}'}j"

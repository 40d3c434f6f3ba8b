"""Compute the ends and the NaN count of each row and column of a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Margin(NamedTuple):
    """The ends of the finite numbers of a row or column, None if there are none, and the NaN count."""

    low: float | None
    high: float | None
    num_nan: int


def margins_of(array: Any, num_columns: int) -> tuple[list[Margin], list[Margin]]:
    """Return the margins of the rows and of the columns of a flat array, row by row.

    Of complex numbers they are those of the modulus.
    """
    values, hidden = np.ma.getdata(array), np.ma.getmaskarray(array).reshape(-1, num_columns)
    with np.errstate(all="ignore"):
        sizes = np.abs(values) if values.dtype.kind == "c" else values
        table = sizes.astype(np.result_type(sizes.dtype, np.float64)).reshape(-1, num_columns)
    is_nan = np.isnan(table) & ~hidden
    is_told = np.isfinite(table) & ~hidden
    return _along(table, is_told, is_nan, 1), _along(table, is_told, is_nan, 0)


def _along(table: Any, is_told: Any, is_nan: Any, axis: int) -> list[Margin]:
    low = table.min(axis=axis, where=is_told, initial=np.inf).tolist()
    high = table.max(axis=axis, where=is_told, initial=-np.inf).tolist()
    counts, nans = is_told.sum(axis=axis).tolist(), is_nan.sum(axis=axis).tolist()
    return [
        Margin(least, largest, nan) if count else Margin(None, None, nan)
        for least, largest, count, nan in zip(low, high, counts, nans, strict=True)
    ]

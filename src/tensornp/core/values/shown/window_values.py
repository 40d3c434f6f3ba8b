"""Read a window of a tensor: its numbers in few digits and exactly, and their shades."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.plan import ConversionPlan, check_readable, decide
from tensornp.core.convert.receipt import no_data_text
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.tensor import kinds
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.shards import ShardFacts
from tensornp.core.tensor.steps import Step
from tensornp.core.values.shown.preview import array_of_few, few_of, what_it_stands_for
from tensornp.core.values.shown.window import Window
from tensornp.core.values.stored import StoredValues, values_of_array
from tensornp.errors import BadRequestError, NoDataError

FULL = 100
"""The shade of the largest magnitude; negative numbers have negative shades."""
NAN, POSITIVE_INF, NEGATIVE_INF, HIDDEN = 127, 126, -126, 125
"""The shades of elements without a place on the scale."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The tensor of a window: a part of a nested tensor, or the local part of a distributed one.

    `access` is the expression that leads to it from ``t``. `part` of `num_parts` counts nested parts, else both are 0.
    """

    tensor: torch.Tensor | StoredValues
    info: TensorInfo
    plan: ConversionPlan
    access: str
    part: int = 0
    num_parts: int = 0
    shard: ShardFacts | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.info._array_shape

    def code(self, name: str) -> str:
        """Return the expression of the tensor that is indexed; empty if elements are packed."""
        if self.shape != self.info.shape:
            return ""
        return name + self.access[1:] + self.info.kind.indexed_by


@dataclass(frozen=True, slots=True)
class Seen:
    """The elements of a window: short texts, exact ones, and shades from -100 to 100, or NAN and so on."""

    texts: list[str]
    exact: list[str]
    shades: list[int]
    scale: tuple[float, float]


@outside_modes
def subject_of(seen: torch.Tensor | StoredValues | np.ndarray[Any, Any], part: int = 0) -> Subject:
    """Return the tensor that a window shows; for a nested one the part of that number, or the last one."""
    tensor: Any = values_of_array(seen) if is_array(seen) else seen
    if type(tensor) is StoredValues:
        return Subject(tensor, tensor.info, decide(tensor.info), "t")
    info = inspect(tensor)
    access, num_parts = (info.kind.access if info.kind.step is Step.STAND_IN else "t"), 0
    tensor, info = what_it_stands_for(tensor, info)
    if info.kind.gives_several:
        check_readable(info)
        parts = tensor.unbind()
        if not parts:
            raise BadRequestError("a nested tensor of no parts has no values to look at; show another one")
        num_parts, part = len(parts), min(max(part, 0), len(parts) - 1)
        tensor, access = parts[part], f"{access}.unbind()[{part}]"
        info = inspect(tensor)
    shard = None
    while info.kind is kinds.LOCAL and info.inner is not None and not info._is_pending:
        if info.data_state == "remote":
            shard = info.shard
            if shard is not None and shard.pending:
                raise NoDataError(no_data_text(info))
        held: Any = info.kind.inner(tensor)
        tensor, info, access = held, info.inner, access + info.kind.access[1:]
    if shard is not None and (shard.offsets is None or shard.shape != info._array_shape):
        # The place of the elements in the whole is not known.
        shard = None
    return Subject(tensor, info, decide(info), access, part if num_parts else 0, num_parts, shard)


@outside_modes
def read_window(subject: Subject, window: Window) -> Seen:
    """Return the elements of `subject` in `window`; nothing else is read."""
    if not window.numel:
        return Seen([], [], [], (0.0, 0.0))
    array = elements_in(subject, window)
    shades, scale = shades_of(array)
    hidden = np.ma.getmaskarray(array)
    exact = ["--" if is_hidden else str(value) for value, is_hidden in zip(np.ma.getdata(array), hidden, strict=True)]
    return Seen(column_texts(array, window.num_columns, DIGITS), exact, shades, scale)


@outside_modes
def elements_in(subject: Subject, window: Window) -> Any:
    """Return the elements in a window of any size, row by row, as a flat array in new memory."""
    few, is_shown = few_of(subject.tensor, subject.info, window.places)
    few = few.cpu() if Step.TO_HOST in subject.plan.steps else few

    def in_rows(values: torch.Tensor) -> torch.Tensor:
        if window.is_transposed:
            values = values.view(window.num_columns, window.num_rows).t()
        return quietly(values.reshape, -1)

    return array_of_few(subject.plan, in_rows(few), None if is_shown is None else in_rows(is_shown))


def shades_of(array: Any) -> tuple[list[int], tuple[float, float]]:
    """Return the place of each element on a scale symmetric about 0, and the two ends of that."""
    values, hidden = np.ma.getdata(array), np.ma.getmaskarray(array)
    with np.errstate(all="ignore"):
        is_nan, is_inf = np.isnan(values), np.isinf(values)
        size = np.abs(values) if values.dtype.kind == "c" else values
        size = size.astype(np.result_type(size.dtype, np.float64))
        is_on_scale = ~(is_nan | is_inf | hidden | np.isinf(size))
        placed = size[is_on_scale]
        low, high = (float(end(placed, initial=0)) for end in (np.min, np.max))
        limit = max(-low, high)
        # In two steps, since the reciprocal of a tiny limit is no float.
        shades = np.where(is_on_scale & (limit > 0), np.rint(size / (limit or 1.0) * FULL), 0)
    conditions = [hidden, is_nan, is_inf & (np.real(values) == -np.inf), is_inf, np.isinf(size)]
    shades = np.select(conditions, [HIDDEN, NAN, NEGATIVE_INF, POSITIVE_INF, FULL], shades)
    return [int(shade) for shade in shades], (low, high)


DIGITS = 4
"""Significant digits."""
_NARROW, _LEAST_FIXED = -2, -3
"""The powers of ten of columns that have no more decimals than digits, and of the last ones without an exponent."""


def column_texts(array: Any, num_columns: int, digits: int) -> list[str]:
    """Return each element of a table as a short text.

    The largest of a column has so many significant digits, or one less; columns within a decade of the largest one have
    its decimals, so that a matrix of weights looks even.
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

"""What a pickle says of the codes of a tensor that torch has quantized: by which numbers they become values."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.legible import legible
from tensornp.models.entries.entry import Array
from tensornp.models.entries.file import FileEntry
from tensornp.models.pickles.rebuilt import tensor_of
from tensornp.models.pickles.records import Call, Global
from tensornp.models.pickles.tensors import PickledTensor
from tensornp.models.quantization.codec import VALUES

MAX_VALUE = float(np.finfo(np.float32).max)
"""The largest scale."""
_MAX_SAID = 60
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
_BY_CHANNEL = ("per_channel_affine", "per_channel_affine_float_qparams")
Laid = Callable[[PickledTensor], FileEntry]
"""Gives what a tensor in a pickle shows of the file."""


@dataclass(frozen=True, eq=False, slots=True)
class Row:
    """Numbers that stand in the pickle itself, as torch wrote them before 1.4; `key` is equal for the same ones."""

    values: np.ndarray[tuple[int], Any]
    are_integers: bool
    key: bytes

    @classmethod
    def of(cls, told: list[Any]) -> Row | None:
        """Return the numbers of a list; None of one that has anything else, or what is not finite."""
        if not all(map(_is_number, told)):
            return None
        values, are_integers = np.array(list(map(float, told))), all(type(one) is int for one in told)
        return cls(values, are_integers, blake2b(values.tobytes() + bytes([are_integers])).digest())

    @property
    def shape(self) -> tuple[int, ...]:
        """How many there are."""
        return self.values.shape


Rows = dict[int, Row | None]
"""Those of a file by the identity of each list, which any number of tensors may have."""
Numbers = FileEntry | Row | float


class Affine(NamedTuple):
    """By what codes become values: one scale and one zero point, or those of each index along `axis`.

    `has_float_zeros` tells that zero points are floats, as only those along an axis are.
    """

    axis: int | None
    scales: Numbers
    zeros: Numbers
    has_float_zeros: bool = False

    @property
    def key(self) -> Hashable:
        """What is equal for the same scales and zero points."""
        return self.axis, _key_of(self.scales), _key_of(self.zeros), self.has_float_zeros

    @property
    def note(self) -> str:
        """What is said of it."""
        if self.axis is None:
            return f"quantized per tensor, scale {self.scales:g}, zero point {self.zeros}"
        return f"quantized per channel along axis {self.axis}"

    def values(self, codes: Array, scales: Array, zeros: Array) -> Array:
        """Return the values of codes as torch computes them on x86, to the last bit."""
        if self.axis is None:
            # By fbgemm: a difference of integers, which wraps around, and a product of floats.
            wide = codes.astype(np.int32) - np.int32(zeros.item())
            return np.asarray(wide.astype(VALUES) * np.float32(scales.item()))
        made = codes.astype(VALUES)
        made -= zeros
        # The scales are floats, or doubles.
        return np.asarray(np.multiply(made, scales).astype(VALUES, copy=False))


def told_of(quantizer: Any, codes: FileEntry, laid: Laid, rows: Rows) -> Affine | str:
    """Return what codes mean, or why it is not told, in a sentence."""
    name = _scheme_of(quantizer)
    if name == "per_tensor_affine" and len(quantizer) == 3:
        _, scale, zero = quantizer
        if not _is_number(scale):
            return "its scale is no finite number"
        if type(zero) is not int or not _are_codes(zero, zero, codes):
            return f"its zero point is none of q{codes.dtype}"
        return Affine(None, float(scale), zero)
    if name in _BY_CHANNEL and len(quantizer) == 4:
        return _told_by_channel(quantizer, codes, laid, rows)
    said = f" {legible(name[:_MAX_SAID])}" if name else ""
    return f"its scheme of quantization{said} is not known"


def _scheme_of(quantizer: Any) -> str:
    scheme = quantizer[0] if type(quantizer) is tuple and quantizer else None
    return scheme.name if isinstance(scheme, Global) and scheme.module == "torch" else ""


def _told_by_channel(quantizer: tuple[Any, ...], codes: FileEntry, laid: Laid, rows: Rows) -> Affine | str:
    assert codes.shape is not None
    scheme, scales, zeros, axis = quantizer
    if type(axis) is not int or not 0 <= axis < len(codes.shape):
        return f"its channels lie along no axis of shape {codes.shape}"
    found: list[FileEntry | Row] = []
    for what, told, dtypes in (("scales", scales, _FLOATS), ("zero points", zeros, (*_INTEGERS, *_FLOATS))):
        some = _numbers_of(told, laid, rows)
        if isinstance(some, str):
            return f"its {what} cannot be read: {some}"
        if some.shape != (codes.shape[axis],):
            return f"its {what} are of shape {some.shape}, and axis {axis} has {codes.shape[axis]:,} indices"
        if isinstance(some, FileEntry) and some.dtype not in dtypes:
            return f"its {what} are {some.dtype}"
        found.append(some)
    first, second = found
    # As torch decides it.
    has_floats = second.dtype in _FLOATS if isinstance(second, FileEntry) else scheme.name != _BY_CHANNEL[0]
    if isinstance(second, Row) and not has_floats:
        values = second.values
        is_any = bool(values.size)
        if not second.are_integers or (is_any and not _are_codes(values.min(), values.max(), codes)):
            return f"its zero points are none of q{codes.dtype}"
    if has_floats and codes.dtype == "int32":
        return "its zero points are floats, of which torch makes no values of qint32"
    return Affine(axis, first, second, has_floats)


def _numbers_of(told: Any, laid: Laid, rows: Rows) -> FileEntry | Row | str:
    """Return a tensor or a list of numbers, or why it is not read."""
    if type(told) is list:
        if id(told) not in rows:
            rows[id(told)] = Row.of(told)
        return rows[id(told)] or "they are no finite numbers"
    tensor = tensor_of((), told) if isinstance(told, Call) else None
    if tensor is None or tensor.is_quantized or not tensor.dtype:
        return tensor.problem if tensor is not None and tensor.problem else "they are no tensor"
    made = laid(tensor)
    return made.problem or made


def _are_codes(low: float, high: float, codes: FileEntry) -> bool:
    """Return whether zero points are such as torch takes."""
    most = np.iinfo(codes.dtype)
    return bool(most.min <= low and high <= most.max)


def _is_number(value: Any) -> bool:
    # Integers may be too large for any float, and compare all the same.
    return type(value) in (int, float) and abs(value) <= MAX_VALUE


def _key_of(numbers: Numbers) -> Hashable:
    if isinstance(numbers, FileEntry):
        return numbers.values_key
    return numbers.key if isinstance(numbers, Row) else numbers

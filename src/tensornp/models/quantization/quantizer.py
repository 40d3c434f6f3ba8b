"""What a pickle says of the codes of a tensor that torch has quantized: by which numbers they become values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel.text import legible
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.entries.in_file import FileSource
from tensornp.models.pickles.torch_pickle import PickledTensor, torch_name
from tensornp.models.quantization.affine import AffineCodes, is_number

_MAX_SAID = 60
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_BY_CHANNEL = ("per_channel_affine", "per_channel_affine_float_qparams")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
Laid = Callable[[PickledTensor], WeightEntry]
"""Gives what a tensor in a pickle shows of the file."""


def quantized(codes: WeightEntry, quantizer: Any, laid: Laid) -> WeightEntry:
    """Return a weight of integer codes as what they mean; `quantizer` is what the pickle says of it.

    `laid` gives what a tensor in there shows of the file.
    """
    assert isinstance(codes._source, FileSource)
    told = told_of(quantizer, codes._source, laid)
    dtype = f"q{codes.dtype}"
    if isinstance(told, str):
        return codes._with_(dtype=dtype, problem=codes.problem or told, note="")
    source = replace(codes._source, codecs=(*codes._source.codecs, told))
    return noted(codes._with_(dtype=dtype, _source=source), told.note)


def told_of(quantizer: Any, codes: FileSource, laid: Laid) -> AffineCodes | str:
    """Return what codes mean, or why it is not told, in a sentence."""
    name = _scheme_of(quantizer)
    if name == "per_tensor_affine" and len(quantizer) == 3:
        _, scale, zero = quantizer
        if not is_number(scale):
            return "its scale is no finite number"
        if type(zero) is not int or not _are_codes(zero, zero, codes):
            return f"its zero point is none of q{codes.dtype}"
        return AffineCodes(codes.dtype, None, float(scale), zero)
    if name in _BY_CHANNEL and len(quantizer) == 4:
        return _told_by_channel(quantizer, codes, laid)
    said = f" {legible(name[:_MAX_SAID])}" if name else ""
    return f"its scheme of quantization{said} is not known"


def _scheme_of(quantizer: Any) -> str:
    return torch_name(quantizer[0]) if type(quantizer) is tuple and quantizer else ""


def _told_by_channel(quantizer: tuple[Any, ...], codes: FileSource, laid: Laid) -> AffineCodes | str:
    _, scales, zeros, axis = quantizer
    if type(axis) is not int or not 0 <= axis < len(codes.shape):
        return f"its channels lie along no axis of shape {codes.shape}"
    found: list[FileSource] = []
    for what, told, dtypes in (("scales", scales, _FLOATS), ("zero points", zeros, (*_INTEGERS, *_FLOATS))):
        some = _numbers_of(told, laid)
        if isinstance(some, str):
            return f"its {what} cannot be read: {some}"
        if some.shape != (codes.shape[axis],):
            return f"its {what} are of shape {some.shape}, and axis {axis} has {codes.shape[axis]:,} indices"
        if some.dtype not in dtypes:
            return f"its {what} are {some.dtype}"
        found.append(some)
    first, second = found
    has_floats = second.dtype in _FLOATS
    if has_floats and codes.dtype == "int32":
        return "its zero points are floats, of which torch makes no values of qint32"
    return AffineCodes(codes.dtype, axis, first, second, has_floats)


def _numbers_of(told: Any, laid: Laid) -> FileSource | str:
    """Return a tensor of numbers, or why it is not read."""
    if type(told) is not PickledTensor or told.quantizer is not None or told.storage is None:
        return "they are no tensor"
    made = laid(told)
    assert isinstance(made._source, FileSource)
    return made.problem or made._source


def _are_codes(low: float, high: float, codes: FileSource) -> bool:
    """Return whether zero points are such as torch takes."""
    most = np.iinfo(codes.dtype)
    return bool(most.min <= low and high <= most.max)

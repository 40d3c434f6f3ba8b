"""The quantizer of a tensor in a pickle: the scales and zero points of its integer codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel.text import legible
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.entries.in_file import FileSource
from tensornp.models.pickles.torch_pickle import PickledTensor, torch_name
from tensornp.models.quantization.affine import AffineCodes, is_scale

_MAX_SAID = 60
_BY_CHANNEL = ("per_channel_affine", "per_channel_affine_float_qparams")
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8")


def quantized(codes: WeightEntry, quantizer: Any, laid: Callable[[PickledTensor], WeightEntry]) -> WeightEntry:
    """Return a weight of codes with their meaning; `laid` gives a tensor's weight."""
    assert isinstance(codes._source, FileSource)
    made = _codec_of(quantizer, codes._source, laid)
    dtype = f"q{codes.dtype}"
    if isinstance(made, str):
        return codes._with_(dtype=dtype, problem=codes.problem or made, note="")
    source = replace(codes._source, codecs=(*codes._source.codecs, made))
    return noted(codes._with_(dtype=dtype, _source=source), made.note)


def _codec_of(quantizer: Any, codes: FileSource, laid: Callable[[PickledTensor], WeightEntry]) -> AffineCodes | str:
    """Return the codec, or the reason why there is none."""
    name = torch_name(quantizer[0]) if type(quantizer) is tuple and quantizer else ""
    if name == "per_tensor_affine" and len(quantizer) == 3:
        _, scale, zero = quantizer
        most = np.iinfo(codes.dtype)
        if not is_scale(scale) or type(zero) is not int or not most.min <= zero <= most.max:
            return f"its scale or its zero point is not of q{codes.dtype}"
        return AffineCodes(codes.dtype, None, float(scale), zero)
    if name not in _BY_CHANNEL or len(quantizer) != 4:
        said = f" {legible(name[:_MAX_SAID])}" if name else ""
        return f"its scheme of quantization{said} is not known"
    _, scales, zeros, axis = quantizer
    if type(axis) is not int or not 0 <= axis < len(codes.shape):
        return f"its channels lie along no axis of shape {codes.shape}"
    found: list[FileSource] = []
    for what, told, dtypes in (("scales", scales, _FLOATS), ("zero points", zeros, (*_INTEGERS, *_FLOATS))):
        if type(told) is not PickledTensor or told.quantizer is not None or told.storage is None:
            return f"its {what} are not a tensor that is read"
        made = laid(told)
        assert isinstance(made._source, FileSource)
        if made.problem:
            return f"its {what} cannot be read: {made.problem}"
        if made.dtype not in dtypes or made.shape != (codes.shape[axis],):
            return f"its {what} are {made.dtype} of shape {made.shape}, for {codes.shape[axis]:,} indices"
        found.append(made._source)
    return AffineCodes(codes.dtype, axis, found[0], found[1])

"""Decode tensors that torch has quantized, such as qint8: codes with a scale and a zero point.

Zero points are integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.entries.in_file import FileSource
from tensornp.models.entries.take import VALUES, Array, Ranges, as_slice
from tensornp.models.pickles.torch_pickle import PickledTensor, Storage, torch_name

_DTYPES = ("qint8", "quint8", "qint32")
_MAX_SCALE = float(np.finfo(np.float32).max)
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8")


@dataclass(frozen=True, slots=True)
class AffineCodes:
    """Decodes integers by a scale and a zero point; those of each index along an `axis` lie in the file."""

    axis: int | None
    scales: FileSource | float
    zeros: FileSource | int
    quantized: str

    @np.errstate(all="ignore")
    def __call__(self, stored: Array, ranges: Ranges) -> Array:
        # As torch does: one scale in float32, and those of an axis in float64; differences of 32 bits wrap around.
        scales: Any = self.scales if self.axis is not None else np.float32(self.scales)  # type: ignore[arg-type]
        zeros: Any = self.zeros if self.axis is not None else np.int32(self.zeros)  # type: ignore[arg-type]
        if self.axis is not None:
            wanted, lined = as_slice(ranges[self.axis]), [1] * stored.ndim
            lined[self.axis] = -1
            scales = scales.numbers(wanted).astype(np.float64).reshape(lined)
            zeros = zeros.numbers(wanted).astype(np.int64).reshape(lined)
        codes = stored.astype(np.int32 if self.axis is None else np.int64)
        return np.asarray((codes - zeros).astype(VALUES) * scales).astype(VALUES)


def quantized(codes: WeightEntry, quantizer: Any, laid: Callable[[PickledTensor], WeightEntry]) -> WeightEntry:
    """Return a weight of codes with their meaning; `laid` gives a tensor's weight."""
    assert isinstance(codes._source, FileSource)
    dtype = f"q{codes.dtype}"
    made = _affine(quantizer, codes._source.shape, dtype, laid)
    if made is None:
        why = codes.problem or "its scheme of quantization is not read, or its scales do not fit"
        return codes._with_(dtype=dtype, problem=why, note="")
    note = f"quantized per channel along axis {made.axis}"
    if made.axis is None:
        note = f"quantized per tensor, scale {made.scales:g}, zero point {made.zeros}"
    return noted(codes._with_(dtype=dtype, _source=replace(codes._source, codec=made)), note)


def _affine(
    quantizer: Any, shape: tuple[int, ...], dtype: str, laid: Callable[[PickledTensor], WeightEntry]
) -> AffineCodes | None:
    """Return the codec, or None if torch writes no such scheme."""
    if dtype not in _DTYPES:
        return None
    name, *facts = quantizer if type(quantizer) is tuple and quantizer else ("",)
    least, most = np.iinfo(dtype[1:]).min, np.iinfo(dtype[1:]).max
    match torch_name(name), facts:
        case "per_tensor_affine", [int() | float() as scale, int() as zero] if least <= zero <= most:
            return AffineCodes(None, float(scale), zero, dtype) if abs(scale) <= _MAX_SCALE else None
        case "per_channel_affine", [PickledTensor(Storage()), PickledTensor(Storage()), int() as axis]:
            scales, zeros = map(laid, facts[:2])
            size = shape[axis : axis + 1] if axis >= 0 else None
            fits = scales.dtype in _FLOATS and zeros.dtype in _INTEGERS and size == scales.shape == zeros.shape
            if fits and not (scales.problem or zeros.problem):
                return AffineCodes(axis, scales._source, zeros._source, dtype)  # type: ignore[arg-type]
    return None

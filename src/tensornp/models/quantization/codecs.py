"""Decode stored codes: integers with zero points, and float8 with a scale for each block."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel.text import legible
from tensornp.core.tensor.strides import BLOCK_NUMEL
from tensornp.errors import NoDataError
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.entries.in_file import FileSource
from tensornp.models.pickles.torch_pickle import PickledTensor, torch_name
from tensornp.models.reading.take import VALUES, Array, Codec, Ranges, Shape, as_slice

_MAX_SCALE = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class AffineCodes(Codec):
    """Decodes integer `codes`; with an `axis`, scales and zero points lie in the file."""

    codes: str
    axis: int | None
    scales: FileSource | float
    zeros: FileSource | int

    @property
    def quantized(self) -> str:
        """The quantized dtype of torch."""
        return f"q{self.codes}"

    @property
    def is_elementwise(self) -> bool:
        """Whether all elements have one scale."""
        return self.axis is None

    @property
    def note(self) -> str:
        """The scheme in a few words."""
        if self.axis is None:
            return f"quantized per tensor, scale {self.scales:g}, zero point {self.zeros}"
        return f"quantized per channel along axis {self.axis}"

    def beside(self, ranges: Ranges) -> list[tuple[Any, Any]]:
        """Return the scales and zero points of the wanted indices along the axis."""
        if self.axis is None:
            return []
        return [(self.scales, as_slice(ranges[self.axis])), (self.zeros, as_slice(ranges[self.axis]))]

    @np.errstate(all="ignore")
    def __call__(self, stored: Array, ranges: Ranges, *numbers: Array) -> Array:
        """Return the values; NoDataError if torch takes no such scale or zero point."""
        if self.axis is None:
            # As fbgemm does: a difference of integers, and a product of floats.
            scale, zero = np.array(self.scales, np.float32), np.array(self.zeros, np.int32)
            return np.asarray((stored.astype(np.int32) - zero).astype(VALUES) * scale)
        made = stored.astype(VALUES)
        if not made.size:
            return made
        scales, zeros = numbers
        has_floats = zeros.dtype.kind == "f"
        low, high = (-_MAX_SCALE, _MAX_SCALE) if has_floats else (np.iinfo(self.codes).min, np.iinfo(self.codes).max)
        if not (np.abs(scales) <= _MAX_SCALE).all() or not ((zeros >= low) & (zeros <= high)).all():
            raise NoDataError(f"a scale is not finite, or a zero point is not a {self.quantized}")
        lined = [1] * made.ndim
        lined[self.axis] = len(scales)
        made -= zeros.astype(VALUES).reshape(lined)
        # As torch does, in float64 unless zero points are floats.
        scales = scales.astype(np.float32 if has_floats else np.float64)
        np.multiply(made, scales.reshape(lined), out=made, casting="unsafe")
        return made


def is_scale(value: Any) -> bool:
    """Return whether a value can be a scale: a number within float32."""
    return type(value) in (int, float) and abs(value) <= _MAX_SCALE


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


_USUAL = 128
"""The size of a block where shapes fit to several."""


@dataclass(frozen=True, slots=True)
class BlockScale(Codec):
    """Multiplies codes by the scale of their block in float32, as models do.

    `block` has the number of elements with a common scale along each dimension.
    """

    codes: str
    scales: FileSource
    block: Shape

    def beside(self, ranges: Ranges) -> list[tuple[Any, Any]]:
        """Return the scales from the first to the last wanted element in each dimension."""
        if math.prod(self.scales.shape) == 1:
            return [(self.scales, ...)]
        blocks = zip(ranges, self.block, strict=True)
        return [(self.scales, tuple(slice(min(one) // n, max(one) // n + 1) if one else slice(0) for one, n in blocks))]

    @np.errstate(all="ignore")
    def __call__(self, stored: Array, ranges: Ranges, *numbers: Array) -> Array:
        """Return the products, computed for some rows at a time."""
        made = np.empty(stored.shape, VALUES)
        if not made.size:
            return made
        scales = numbers[0].astype(VALUES)
        scales = scales if scales.size > 1 else scales.reshape((1,) * len(self.block))
        places = [np.asarray(one) // size - min(one) // size for one, size in zip(ranges, self.block, strict=True)]
        from tensornp.core.values.blocks import numbers_of

        step = max(BLOCK_NUMEL // math.prod(made.shape[1:]), 1)
        for first in range(0, len(made), step):
            rows = slice(first, first + step)
            # Few lines of scales repeat along the last dimension.
            lines = scales[np.ix_(places[0][rows], *places[1:-1])] if len(places) > 1 else scales
            factors = lines.take(places[-1][rows if len(places) == 1 else ...], -1)
            np.multiply(numbers_of(stored[rows], self.codes), factors, made[rows])
        return made


def block_of(shape: tuple[int, ...], scales: tuple[int, ...], told: Any) -> tuple[int, ...] | None:
    """Return the block size along each dimension, None if it is unknown.

    `told` is the `weight_block_size` of a configuration for the last dimensions. If it does not fit, the size comes
    from the shapes.
    """
    if not shape or 0 in (*shape, *scales):
        return None
    if math.prod(scales) == 1:
        return shape
    if len(shape) != len(scales):
        return None
    sizes = told if isinstance(told, list) and all(type(size) is int and size > 0 for size in told) else []
    if len(sizes) <= len(shape):
        configured = (*(1,) * (len(shape) - len(sizes)), *sizes)
        if sizes and _fits(shape, scales, configured):
            return configured
    guessed = tuple(_size_of(n, num) for n, num in zip(shape, scales, strict=True))
    return guessed if _fits(shape, scales, guessed) else None


def _size_of(n: int, num_scales: int) -> int:
    """Return the block size in one dimension: the usual one if it fits."""
    if num_scales > 1 and -(-n // _USUAL) == num_scales:
        return _USUAL
    return n // num_scales if n % num_scales == 0 else 1


def _fits(shape: tuple[int, ...], scales: tuple[int, ...], block: tuple[int, ...]) -> bool:
    return all(-(-n // size) == num for n, num, size in zip(shape, scales, block, strict=True))

"""Decode stored codes: integers with zero points, and float8 with a scale for each block."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.errors import NoDataError
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.entries.in_file import FileSource
from tensornp.models.entries.take import VALUES, Array, Ranges, Shape, as_slice
from tensornp.models.pickles.torch_pickle import PickledTensor, Storage, torch_name

_MAX_SCALE = float(np.finfo(np.float32).max)
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
_USUAL = 128
"""The size of a block where shapes fit to several."""


@dataclass(frozen=True, slots=True)
class AffineCodes:
    """Decodes integer `codes`; with an `axis`, scales and zero points lie in the file."""

    codes: str
    axis: int | None
    scales: FileSource | float
    zeros: FileSource | int

    @property
    def quantized(self) -> str:
        return f"q{self.codes}"

    @np.errstate(all="ignore")
    def __call__(self, stored: Array, ranges: Ranges) -> Array:
        """Return the values; NoDataError if torch takes no such scale or zero point."""
        if not isinstance(self.scales, FileSource) or not isinstance(self.zeros, FileSource):
            # As fbgemm does: a difference of integers, and a product of floats.
            scale, zero = np.array(self.scales, np.float32), np.array(self.zeros, np.int32)
            return np.asarray((stored.astype(np.int32) - zero).astype(VALUES) * scale)
        made = stored.astype(VALUES)
        if not made.size or self.axis is None:
            return made
        wanted = as_slice(ranges[self.axis])
        scales, zeros = self.scales.numbers(wanted), self.zeros.numbers(wanted)
        limits = np.iinfo(self.codes)
        if not (np.abs(scales) <= _MAX_SCALE).all() or not ((zeros >= limits.min) & (zeros <= limits.max)).all():
            raise NoDataError(f"a scale is not finite, or a zero point is not a {self.quantized}")
        lined = [1] * made.ndim
        lined[self.axis] = len(scales)
        made -= zeros.astype(VALUES).reshape(lined)
        # As torch does.
        np.multiply(made, scales.astype(np.float64).reshape(lined), out=made, casting="unsafe")
        return made


def quantized(codes: WeightEntry, quantizer: Any, laid: Callable[[PickledTensor], WeightEntry]) -> WeightEntry:
    """Return a weight of codes with their meaning; `laid` gives a tensor's weight."""
    assert isinstance(codes._source, FileSource)
    made = _affine(quantizer, codes._source, laid)
    dtype = f"q{codes.dtype}"
    if isinstance(made, str):
        return codes._with_(dtype=dtype, problem=codes.problem or made, note="")
    note = f"quantized per channel along axis {made.axis}"
    if made.axis is None:
        note = f"quantized per tensor, scale {made.scales:g}, zero point {made.zeros}"
    return noted(codes._with_(dtype=dtype, _source=replace(codes._source, codec=made)), note)


def _affine(quantizer: Any, codes: FileSource, laid: Callable[[PickledTensor], WeightEntry]) -> AffineCodes | str:
    """Return the codec, or the reason why there is none."""
    name, *facts = quantizer if type(quantizer) is tuple and quantizer else ("",)
    most = np.iinfo(codes.dtype)
    match torch_name(name), facts:
        case "per_tensor_affine", [int() | float() as scale, int() as zero] if most.min <= zero <= most.max:
            if abs(scale) <= _MAX_SCALE:
                return AffineCodes(codes.dtype, None, float(scale), zero)
        case "per_channel_affine", [PickledTensor(Storage()), PickledTensor(Storage()), int() as axis]:
            of_scales, of_zeros = map(laid, facts[:2])
            size = codes.shape[axis : axis + 1] if axis >= 0 else None
            fits = of_scales.dtype in _FLOATS and of_zeros.dtype in _INTEGERS
            if fits and size == of_scales.shape == of_zeros.shape and not (of_scales.problem or of_zeros.problem):
                return AffineCodes(codes.dtype, axis, of_scales._source, of_zeros._source)  # type: ignore[arg-type]
    return "its scheme of quantization is not read, or its scales do not fit"


@dataclass(frozen=True, slots=True)
class BlockScale:
    """Multiplies codes by the scale of their block in float32, as models do.

    `block` has the number of elements with a common scale along each dimension.
    """

    codes: str
    scales: FileSource
    block: Shape

    @np.errstate(all="ignore")
    def __call__(self, stored: Array, ranges: Ranges) -> Array:
        from tensornp.core.values.blocks import numbers_of

        if math.prod(self.scales.shape) == 1:
            scale = self.scales.numbers(...).astype(VALUES).reshape(())
            return np.asarray(numbers_of(stored, self.codes) * scale)
        pairs = list(zip(ranges, self.block, strict=True))
        if not stored.size:
            return np.empty(stored.shape, VALUES)
        scales = self.scales.numbers(tuple(slice(min(one) // n, max(one) // n + 1) for one, n in pairs)).astype(VALUES)
        factors: Array = scales[np.ix_(*(np.asarray(one) // n - min(one) // n for one, n in pairs))]
        factors *= numbers_of(stored, self.codes)
        return factors


def block_of(shape: tuple[int, ...], scales: tuple[int, ...], told: Any) -> tuple[int, ...] | None:
    """Return the block size along each dimension, None if it is unknown.

    `told` is the `weight_block_size` of a configuration. If it does not fit, the size comes from the shapes.
    """
    if not shape or 0 in (*shape, *scales):
        return None
    if math.prod(scales) == 1:
        return shape
    if len(shape) != len(scales):
        return None
    sizes = told if isinstance(told, list) and all(type(size) is int and size > 0 for size in told) else []
    configured = (*(1,) * (len(shape) - len(sizes)), *sizes)
    usual = tuple(
        _USUAL if num > 1 and -(-n // _USUAL) == num else n // num if n % num == 0 else 1
        for n, num in zip(shape, scales, strict=True)
    )
    tried = [configured, usual] if sizes and len(configured) == len(shape) else [usual]
    fitting = (one for one in tried if all(-(-n // b) == s for n, b, s in zip(shape, one, scales, strict=True)))
    return next(fitting, None)

"""Decode float8 codes with a scale for each block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.models.entries.in_file import FileSource
from tensornp.models.entries.take import VALUES, Array, Ranges, Shape

_USUAL = 128
"""The size of a block where shapes fit to several."""


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

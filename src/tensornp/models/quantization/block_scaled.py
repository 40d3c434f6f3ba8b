"""Float8 codes with a scale for each block, in another weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.tensor.strides import BLOCK_NUMEL
from tensornp.models.entries.in_file import FileSource
from tensornp.models.reading.codec import VALUES, Codec
from tensornp.models.reading.take import Array, Ranges, Shape

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
            # Of few lines of scales, those along the last dimension come again and again.
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

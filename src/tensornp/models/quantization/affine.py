"""Integer codes as torch quantizes them: each has a scale and a zero point, its own or those of its channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.values.block import BLOCK_NUMEL, blocks_of
from tensornp.errors import NoDataError
from tensornp.models.entries.in_file import FileSource
from tensornp.models.reading.codec import VALUES, Codec
from tensornp.models.reading.selection import Array, Range, Ranges

MAX_VALUE = float(np.finfo(np.float32).max)
"""The largest scale."""


@dataclass(frozen=True, slots=True)
class AffineCodes(Codec):
    """Makes values of integer `codes`, by one scale and one zero point, or by those of each index along `axis`.

    Zero points along an axis may be floats.
    """

    codes: str
    axis: int | None
    scales: FileSource | float
    zeros: FileSource | int
    has_float_zeros: bool = False

    @property
    def quantized(self) -> str:
        """The quantized dtype of torch."""
        return f"q{self.codes}"

    @property
    def is_elementwise(self) -> bool:
        """Whether one scale is that of all."""
        return self.axis is None

    @property
    def note(self) -> str:
        """What is said of it."""
        if self.axis is None:
            return f"quantized per tensor, scale {self.scales:g}, zero point {self.zeros}"
        return f"quantized per channel along axis {self.axis}"

    @property
    def sources(self) -> tuple[FileSource, ...]:
        """Those of the scales and zero points that lie in the file as tensors."""
        return tuple(one for one in (self.scales, self.zeros) if isinstance(one, FileSource))

    def beside(self, ranges: Ranges) -> tuple[Any, ...]:
        """Return the wanted indices along the axis, of each."""
        return (ranges[self.axis].slice,) * len(self.sources) if self.axis is not None else ()

    @np.errstate(all="ignore")
    def decode(self, stored: Array, ranges: Ranges, beside: Sequence[Array]) -> Array:
        """Return the values, of some elements at a time."""
        made = np.empty(stored.shape, VALUES)
        if not made.size:
            return made
        scales, zeros = self._numbers(ranges, beside)
        for start, sizes in blocks_of(made.shape, BLOCK_NUMEL):
            at = tuple(slice(i, i + n) for i, n in zip(start, sizes, strict=True))
            ours = (scales, zeros)
            if self.axis is not None:
                lined = [n if d == self.axis else 1 for d, n in enumerate(sizes)]
                ours = scales[at[self.axis]].reshape(lined), zeros[at[self.axis]].reshape(lined)
            made[at] = self._values(stored[at], *ours)
        return made

    def _values(self, codes: Array, scales: Array, zeros: Array) -> Array:
        """Return the values of codes as torch computes them on x86, to the last bit."""
        if self.axis is None:
            # By fbgemm: a difference of integers, which wraps around, and a product of floats.
            wide = codes.astype(np.int32) - np.int32(zeros.item())
            return np.asarray(wide.astype(VALUES) * np.float32(scales.item()))
        made = codes.astype(VALUES)
        made -= zeros
        return np.asarray(np.multiply(made, scales).astype(VALUES, copy=False))

    def _numbers(self, ranges: Ranges, beside: Sequence[Array]) -> tuple[Array, Array]:
        """Return the scales and zero points of all codes, or of the wanted indices; NoDataError for NaN."""
        if self.axis is None:
            return np.array(self.scales), np.array(self.zeros)
        along, (scales, zeros) = ranges[self.axis], beside
        most = np.iinfo(self.codes)
        self._check("scale", scales, np.abs(scales) <= MAX_VALUE, along)
        low, high = (-MAX_VALUE, MAX_VALUE) if self.has_float_zeros else (most.min, most.max)
        self._check("zero point", zeros, (zeros >= low) & (zeros <= high), along)
        return scales.astype(np.float32 if self.has_float_zeros else np.float64), zeros.astype(VALUES)

    def _check(self, what: str, some: Array, is_right: Array, along: Range) -> None:
        """Raise NoDataError unless all are such as torch takes."""
        if not is_right.all():
            at = int(np.argmin(is_right))
            told = f"its {what} of index {along.first + at * along.step:,} is {some[at]}"
            raise NoDataError(f"{told}, and none of {self.quantized}")


def is_number(value: Any) -> bool:
    """Return whether a value is a number that a scale can be."""
    # Integers may be too large for any float, and compare all the same.
    return type(value) in (int, float) and abs(value) <= MAX_VALUE

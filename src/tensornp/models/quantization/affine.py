"""Integer codes of torch: scales and zero points, for all or along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.errors import NoDataError
from tensornp.models.entries.in_file import FileSource
from tensornp.models.reading.codec import VALUES, Codec
from tensornp.models.reading.take import Array, Ranges, as_slice

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

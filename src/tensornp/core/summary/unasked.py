"""Figures that nobody asked for: of what lies in main memory, up to so many bytes for all that is shown at once."""

from __future__ import annotations

from typing import Any

from tensornp.core.lowlevel.text import format_nbytes
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.values.reading.supply import nbytes_unasked
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import HistogramChoice, TensorStats

MAX_TENSORS = 200
"""Each costs some 0.4 ms, however small."""


class Unasked:
    """What may still be read: so many bytes, of so many tensors; `num_unread` counts those that were too many.

    `bounds` are those that were reached, in words.
    """

    def __init__(self, max_nbytes: int) -> None:
        self._max_nbytes, self._left, self._num_left = max_nbytes, max_nbytes, MAX_TENSORS
        self.num_unread = 0
        self.bounds: dict[str, None] = {}

    def figures(self, tensor: Any, info: TensorInfo, *, histogram: HistogramChoice = "auto") -> TensorStats | None:
        """Return the figures of a tensor where they cost little; None where not, or where there are none."""
        try:
            return self._read(tensor, nbytes_unasked(tensor, info), histogram, info)
        except Exception:
            # Looking never fails: what is shown is complete without them.
            return None

    def not_finite(self, obj: Any, info: TensorInfo | None) -> TensorStats | None:
        """Return figures without a histogram of what may hold NaN or infinities: a tensor, or an array for None."""
        if info is not None:
            is_float = info.dtype.is_floating_point or info.dtype.is_complex
            return self.figures(obj, info, histogram=None) if is_float else None
        try:
            return self._read(obj, obj.nbytes, None, None) if obj.dtype.kind in "fc" else None
        except Exception:
            return None

    def _read(self, obj: Any, nbytes: int, histogram: HistogramChoice, info: TensorInfo | None) -> TensorStats | None:
        if nbytes <= 0:
            return None
        if nbytes > self._left or not self._num_left:
            self.num_unread += 1
            bound = f"{MAX_TENSORS:,} tensors" if not self._num_left else format_nbytes(self._max_nbytes)
            self.bounds[bound] = None
            return None
        self._left -= nbytes
        self._num_left -= 1
        return scan(obj, histogram=histogram, info=info)

"""Read automatic statistics, within a budget for one display."""

from __future__ import annotations

from typing import Any

from tensornp.core.lowlevel.text import format_nbytes
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.values.sources import nbytes_unasked
from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import HistogramChoice, TensorStats

MAX_TENSORS = 200
"""Each costs some 0.4 ms, however small."""


class StatsBudget:
    """Reads statistics until so many bytes, or so many tensors, have been read.

    `num_unread` counts those that were too many; `bounds` are the bounds that were reached, in words.
    """

    def __init__(self, max_nbytes: int) -> None:
        self._max_nbytes, self._left, self._num_left = max_nbytes, max_nbytes, MAX_TENSORS
        self.num_unread = 0
        self.bounds: dict[str, None] = {}

    def stats(self, tensor: Any, info: TensorInfo, *, histogram: HistogramChoice = "auto") -> TensorStats | None:
        """Return the statistics of a tensor; None if it is too large, or has none."""
        try:
            return self._read(tensor, nbytes_unasked(info), histogram, info)
        except Exception:
            # A display never fails: it is complete without them.
            return None

    def nonfinite(self, obj: Any, info: TensorInfo | None) -> TensorStats | None:
        """Return statistics without a histogram of a float tensor, or of a float array if `info` is None."""
        if info is not None:
            is_float = info.dtype.is_floating_point or info.dtype.is_complex
            return self.stats(obj, info, histogram=None) if is_float else None
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

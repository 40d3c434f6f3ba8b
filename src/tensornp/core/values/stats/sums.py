"""The figures of blocks that come one after the other, or many in a row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensornp.core.memory.blocks import BLOCK_NUMEL
from tensornp.core.values.stats.fast import NO_COUNTS, Kernels
from tensornp.core.values.stats.figures import Figures, combined, figures_of

Array = np.ndarray[Any, Any]


class FigureSums:
    """The figures of blocks; those of floats are added up by compiled loops, but for such as need more than sums."""

    def __init__(self, kernels: Kernels | None = None) -> None:
        self._kernels = kernels
        # How many, how many zeros, the least, the largest, the sum and that of the squares.
        self._sums = np.array([0, 0, np.inf, -np.inf, 0, 0])
        self._others: list[Figures] = []

    def add(self, values: Array, shift: int = 0, counts: Array = NO_COUNTS) -> int:
        """Take numbers, of any length; what comes of `shift` and `counts`, `Kernels.walk` tells."""
        if self._kernels is None or values.dtype.kind != "f":
            self._others.append(figures_of(values))
            return 0
        left, small = self._kernels.walk(values, self._sums, shift, counts)
        self._others += [figures_of(values[i * BLOCK_NUMEL :][:BLOCK_NUMEL]) for i in left]
        return small

    def finish(self) -> Figures:
        """Return the figures of all."""
        count, zeros, low, high, total, squares = self._sums.tolist()
        if not count:
            return combined(self._others)
        mean = total / count
        std = math.sqrt(squares / count - mean * mean)
        # No zero has a sign here.
        own = Figures(int(count), 0, 0, 0, int(zeros), low + 0.0, high + 0.0, total, mean, std)
        return combined([own, *self._others])

"""A sample of the elements of a tensor, spread evenly, and the same each time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensornp.core.memory.blocks import BLOCK_NUMEL

Array = np.ndarray[Any, Any]
_MAX_SAMPLED = 4 * BLOCK_NUMEL
"""Elements of which the places are laid out at once."""
_GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it, but for their whole part, are spread evenly however many there are."""


class Sampler:
    """Takes one element of each stretch of equal length, at a place in it that looks random and is always the same."""

    def __init__(self, numel: int, wanted: int) -> None:
        self.one_in = numel / wanted
        num_taken = int(_MAX_SAMPLED / self.one_in) + 2
        jitter = np.random.Generator(np.random.PCG64(0)).random(num_taken)
        self._pattern = ((np.arange(num_taken) + jitter) * self.one_in).astype(np.int64)

    def sample(self, values: Array, ordinal: int) -> Array:
        """Return some of the values of the block with this number."""
        if len(values) > _MAX_SAMPLED:
            # A row that is read at once may be longer than any block.
            parts = range(0, len(values), _MAX_SAMPLED)
            return np.concatenate([self.sample(values[i : i + _MAX_SAMPLED], ordinal + i) for i in parts])
        first = int((ordinal * _GOLDEN) % 1 * self.one_in)
        # The block begins in the first stretch, and ends in this one.
        last = int((first + len(values)) / self.one_in)
        start, stop = int(self._pattern[0] < first), last + int(self._pattern[last] < first + len(values))
        return values.take(self._pattern[start:stop] - first)

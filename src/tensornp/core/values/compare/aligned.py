"""Two tensors or arrays side by side: flat blocks of equal length, in the order of their indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensornp.core.memory.blocks import BLOCK_NUMEL
from tensornp.core.values.reading.supply import Supply

Array = np.ndarray[Any, Any]


def pairs_of(a: Supply, b: Supply) -> Iterator[tuple[Array, Array]]:
    """Yield flat blocks of both, of equal length."""
    readers = _Reader(a), _Reader(b)
    while True:
        left, right = (reader.some() for reader in readers)
        size = min(left.size, right.size)
        if not size:
            return
        yield left[:size], right[:size]
        for reader in readers:
            reader.done(size)


class _Reader:
    """Reads the parts one after the other; of a block, some is taken at a time."""

    def __init__(self, supply: Supply) -> None:
        # A view of the user's own memory where that is steady, which it is for as long as the gate is closed.
        self._blocks = (
            (part, block, in_place)
            for part in supply.parts
            for in_place in (part.can_be_read_in_place(),)
            for block in part.blocks()
        )
        self._zeros = supply.zeros
        self._rest: Array = np.zeros(0)

    def some(self) -> Array:
        """Return what is left of the block, or the next one; empty in the end."""
        while not self._rest.size:
            following = next(self._blocks, None)
            if following is None:
                num_zeros, self._zeros = min(self._zeros, BLOCK_NUMEL), max(self._zeros - BLOCK_NUMEL, 0)
                self._rest = np.zeros(num_zeros)
                return self._rest
            part, block, in_place = following
            keep: Callable[[Array, Any], Array] = lambda values, _: values.reshape(-1)  # noqa: E731
            (self._rest,) = part.use_each([block], keep, in_place=in_place)
        return self._rest

    def done(self, size: int) -> None:
        """Note that so much was looked at."""
        self._rest = self._rest[size:]

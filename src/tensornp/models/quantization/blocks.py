"""Blocks of codes that stand one after the other, as GGML packs them: so many values in so many bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tensornp.core.values.block import BLOCK_NUMEL
from tensornp.models.reading.codec import VALUES, Codec
from tensornp.models.reading.selection import Array, Range, Ranges, Shape


class BlockType(Protocol):
    """How the blocks of one type are read: so many bytes for so many values, which lie along the last dimension."""

    @property
    def name(self) -> str: ...

    @property
    def block_numel(self) -> int: ...

    @property
    def block_nbytes(self) -> int: ...

    def decode(self, codes: Array) -> Array:
        """Return the values of the bytes of some blocks, flat, as float32."""


@dataclass(frozen=True, slots=True)
class Blocks(Codec):
    """Makes the values of blocks, of which whole ones are read, and what is not wanted of them left out."""

    type: BlockType

    def stored(self, shape: Shape) -> tuple[Shape, np.dtype[Any]]:
        """Return the blocks, each an item of so many bytes."""
        return (*shape[:-1], shape[-1] // self.type.block_numel), np.dtype((np.void, self.type.block_nbytes))

    def needs(self, ranges: Ranges) -> Ranges:
        """Return the blocks that have the wanted values."""
        last, numel = ranges[-1], self.type.block_numel
        first = last.first // numel
        stop = -(-(last.first + (last.num - 1) * last.step + 1) // numel) if last.num else first
        return (*ranges[:-1], Range(first, stop - first, 1))

    def decode(self, stored: Array, ranges: Ranges, beside: Sequence[Array]) -> Array:
        """Return the values, of some rows of blocks at a time."""
        made = np.empty(tuple(one.num for one in ranges), VALUES)
        if not made.size:
            return made
        last, numel, num_blocks = ranges[-1], self.type.block_numel, stored.shape[-1]
        skipped = last.first % numel
        part = slice(skipped, skipped + (last.num - 1) * last.step + 1, last.step)
        rows, lines = np.ascontiguousarray(stored).reshape(-1, num_blocks), made.reshape(-1, last.num)
        step = max(BLOCK_NUMEL // (num_blocks * numel), 1)
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            lines[first : first + step] = self._values(some.reshape(-1).view(np.uint8)).reshape(len(some), -1)[:, part]
        return made

    def _values(self, codes: Array) -> Array:
        """Return the values of whole blocks, of which some at a time are decoded."""
        num = codes.size // self.type.block_nbytes
        made = np.empty((num, self.type.block_numel), VALUES)
        step = BLOCK_NUMEL // self.type.block_numel
        for first in range(0, num, step):
            some = codes[first * self.type.block_nbytes : (first + step) * self.type.block_nbytes]
            made[first : first + step] = self.type.decode(some).reshape(-1, self.type.block_numel)
        return made

"""A weight of float8 codes, of which each block has a scale that stands in another weight."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.lowlevel.float_errors import ignoring_float_errors
from tensornp.core.memory.strided import BLOCK_NUMEL
from tensornp.core.values.reading.blocks import ReadPart
from tensornp.core.values.reading.decode import decoder
from tensornp.core.values.reading.supply import Supply
from tensornp.models.entries.entry import Array
from tensornp.models.entries.file import FileEntry
from tensornp.models.entries.stored import ReadPlan
from tensornp.models.files.source_file import Reader
from tensornp.models.names.quoted import shown_name
from tensornp.models.quantization.codec import VALUES
from tensornp.models.reading.selection import Selection

_USUAL = 128
"""The size of a block where shapes fit to several."""


class ScaledEntry(FileEntry):
    """A weight whose values are float32: each code times the scale of its block, as models compute with it.

    Attributes
    ----------
    codes, scales : FileEntry
        The two weights of the file; the values of `codes` are those that `code` gives.
    block : tuple of int
        How many elements along each dimension have one scale.
    """

    __slots__ = ("block", "codes", "scales")

    def __init__(self, codes: FileEntry, scales: FileEntry, block: tuple[int, ...]) -> None:
        self._begin_as(codes)
        self.codes, self.scales, self.block = codes, scales, block
        self.note = f"block-scaled float8, scales {shown_name(scales.name)}"

    @property
    def dtype_of_values(self) -> str:
        """What the codes mean."""
        return VALUES

    @property
    def values_key(self) -> tuple[Any, ...]:
        """What is equal for the same values, the scales among it."""
        return *super().values_key, self.scales.values_key, self.block

    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read, of codes and scales."""
        part = self._scales_of(self.select(index)) if self.scales.numel > 1 else ...
        codes, scales = self.codes.plan(index), self.scales.plan(part)
        return ReadPlan(codes.nbytes_read + scales.nbytes_read, codes.num_reads + scales.num_reads, codes.shape)

    def _check_unchanged(self) -> None:
        super()._check_unchanged()
        self.scales._check_unchanged()

    def _paths(self) -> set[str]:
        return super()._paths() | self.scales._paths()

    def _scales(self, index: Any = ...) -> Array:
        """Return some of the scales, along each dimension of the codes."""
        made = self.scales.to_numpy() if self.scales.numel == 1 else self.scales.to_numpy(index)
        return made.astype(VALUES).reshape(made.shape if made.size > 1 else (1,) * len(self.block))

    def _scales_of(self, wanted: Selection) -> tuple[slice, ...]:
        """Return where the scales of the wanted elements lie, from the first to the last."""
        ranges = zip(wanted.ranges, self.block, strict=True)
        return tuple(
            slice(one.first // size, (one.first + (one.num - 1) * one.step) // size + 1 if one.num else 0)
            for one, size in ranges
        )

    @ignoring_float_errors
    def _bits_at(self, opened: Reader, selection: Selection) -> Array:
        wanted = selection
        bits = super()._bits_at(opened, replace(wanted, final=(slice(None),) * len(self.block)))
        made = np.empty(wanted.counts, VALUES)
        if made.size:
            part = self._scales_of(wanted)
            scales = self._scales(part)
            places = [
                (one.first + one.step * np.arange(one.num)) // size - at.start
                for one, size, at in zip(wanted.ranges, self.block, part, strict=True)
            ]
            decode = decoder(self.dtype)
            step = max(BLOCK_NUMEL // math.prod(wanted.counts[1:]), 1)
            for first in range(0, len(made), step):
                rows = slice(first, first + step)
                made[rows] = decode(bits[rows]) * scales[np.ix_(places[0][rows], *places[1:])]
        return np.asarray(made[wanted.final])

    def _supply(self, opened: Any) -> Supply:
        scales: list[Array] = []

        def read(first: int, count: int) -> Array:
            # Read once for all blocks.
            if not scales:
                scales.append(self._scales())
            return self._flat(opened, first, count, scales[0])

        assert self.shape is not None
        return Supply((ReadPart(read, (self.numel,), VALUES),), VALUES, self.shape, order=self._order())

    def _flat(self, opened: Reader, first: int, count: int, scales: Array | None = None) -> Array:
        values = decoder(self.dtype)(opened.read(self._offset + first, count))
        self._scale(values, first, self._scales() if scales is None else scales)
        return values

    def _scale(self, values: Array, first: int, scales: Array) -> None:
        """Multiply elements that lie in the order of their indices: parts of rows, and whole rows between them."""
        assert self.shape is not None
        width, size = self.shape[-1], self.block[-1]
        at = 0
        while at < len(values):
            row, column = divmod(first + at, width)
            left = len(values) - at
            num_rows = max(left // width, 1) if not column else 1
            count = min(num_rows * width - column, left)
            lines = scales.reshape(-1, scales.shape[-1])[self._lines(row, num_rows)]
            last = (column + min(count, width) - 1) // size
            wide = np.repeat(lines[:, column // size : last + 1], size, axis=1)[:, column % size :]
            part = values[at : at + count].reshape(num_rows, -1)
            part *= wide[:, : part.shape[1]]
            at += count

    def _lines(self, row: int, num_rows: int) -> Array:
        """Return which line of scales each of some rows has, all dimensions but the last one counted together."""
        assert self.shape is not None
        lead, found = self.shape[:-1], np.zeros(num_rows, np.int64)
        places = np.unravel_index(np.arange(row, row + num_rows), lead) if lead else ()
        for place, size, n in zip(places, self.block, lead, strict=False):
            found = found * -(-n // size) + place // size
        return found


def block_of(shape: tuple[int, ...], scales: tuple[int, ...], told: Any) -> tuple[int, ...] | None:
    """Return how many elements along each dimension have one scale; None where that is not told.

    `told` is the `weight_block_size` of a configuration, for the last dimensions; where it does not fit, the shapes
    tell.
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
    """Return the size of the blocks of one dimension: the usual one, if it fits to more than one block."""
    if num_scales > 1 and -(-n // _USUAL) == num_scales:
        return _USUAL
    return n // num_scales if n % num_scales == 0 else 1


def _fits(shape: tuple[int, ...], scales: tuple[int, ...], block: tuple[int, ...]) -> bool:
    return all(-(-n // size) == num for n, num, size in zip(shape, scales, block, strict=True))

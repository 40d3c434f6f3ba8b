"""A weight of which a file holds blocks of codes, and the values are what they mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensornp.core.memory.strided import BLOCK_NUMEL
from tensornp.models.entries.entry import Array
from tensornp.models.entries.file import FileEntry
from tensornp.models.entries.stored import ReadPlan
from tensornp.models.files.source_file import Reader, Source
from tensornp.models.quantization.codec import VALUES, Codec
from tensornp.models.reading.selection import Range, Selection, contiguous, select


class CodedEntry(FileEntry):
    """A weight whose `dtype` is the name of a codec; values are float32, and only the blocks of an index are read."""

    __slots__ = ("_codec",)

    def __init__(self, name: str, shape: tuple[int, ...], codec: Codec, code: str, file: Source, offset: int) -> None:
        super().__init__(name, shape, codec.name, code, file, offset)
        self._codec = codec
        self.nbytes = math.prod(shape) // codec.block_numel * codec.block_nbytes

    @property
    def dtype_of_values(self) -> str:
        """What the codes mean."""
        return VALUES

    @property
    def values_key(self) -> tuple[Any, ...]:
        """What is equal for the same values, the codec among it."""
        return *super().values_key, self._codec

    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read: whole blocks; BadRequestError for an index that is none."""
        self.check_readable()
        wanted = self.select(index)
        runs = [run.nbytes for run in self._blocks(wanted).runs()]
        return ReadPlan(sum(runs), len(runs), wanted.result_shape)

    def _bits_at(self, opened: Reader, selection: Selection) -> Array:
        made = np.empty(selection.counts, VALUES)
        if made.size:
            self._fill(opened, made, selection)
        return np.asarray(made[selection.final])

    def _fill(self, opened: Reader, made: Array, wanted: Selection) -> None:
        """Read the blocks, decode some rows of them at a time, and leave out what is not wanted."""
        codec, blocks = self._codec, self._blocks(wanted)
        block = np.dtype((np.void, codec.block_nbytes))
        codes = blocks.read(lambda target, first: opened.read_into(target, self._offset + first), block)
        last, of_blocks = wanted.ranges[-1], blocks.ranges[-1]
        skipped = last.first - of_blocks.first * codec.block_numel
        part = slice(skipped, skipped + (last.num - 1) * last.step + 1, last.step)
        rows, lines = np.ascontiguousarray(codes).reshape(-1, of_blocks.num), made.reshape(-1, last.num)
        step = max(BLOCK_NUMEL // (of_blocks.num * codec.block_numel), 1)
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            lines[first : first + step] = self._decoded(some.reshape(-1).view(np.uint8)).reshape(len(some), -1)[:, part]

    def _decoded(self, codes: Array) -> Array:
        """Return the values of whole blocks, of which some at a time are decoded."""
        codec = self._codec
        made = np.empty(codes.size // codec.block_nbytes * codec.block_numel, VALUES)
        step = BLOCK_NUMEL // codec.block_numel
        for first in range(0, codes.size // codec.block_nbytes, step):
            some = codec.decode(codes[first * codec.block_nbytes : (first + step) * codec.block_nbytes])
            made[first * codec.block_numel : first * codec.block_numel + some.size] = some
        return made

    def _blocks(self, wanted: Selection) -> Selection:
        """Return the blocks that have the wanted elements; the others in them are left out afterwards."""
        assert self.shape is not None
        codec, last = self._codec, wanted.ranges[-1]
        first = last.first // codec.block_numel
        stop = -(-(last.first + (last.num - 1) * last.step + 1) // codec.block_numel) if last.num else first
        strides = contiguous((*self.shape[:-1], self.shape[-1] // codec.block_numel))
        return Selection(
            tuple(step * codec.block_nbytes for step in strides),
            codec.block_nbytes,
            (*wanted.ranges[:-1], Range(first, stop - first, 1)),
            (slice(None),) * len(strides),
        )

    def select(self, index: Any) -> Selection:
        """Return what an index takes of the values."""
        assert self.shape is not None
        return select(index, self.shape, 1)

    def _flat(self, opened: Reader, first: int, count: int) -> Array:
        codec = self._codec
        start, stop = first // codec.block_numel, -(-(first + count) // codec.block_numel)
        codes = opened.read(self._offset + start * codec.block_nbytes, (stop - start) * codec.block_nbytes)
        return self._decoded(codes)[first - start * codec.block_numel :][:count]

"""A weight whose chunks lie in several places: of each file, only what an index needs is read."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.reading.decode import stored_dtype
from tensornp.models.entries.entry import Array, Extent
from tensornp.models.entries.file import why_no_array
from tensornp.models.entries.stored import ReadPlan, StoredEntry
from tensornp.models.files.byte_range import ByteSource
from tensornp.models.formats.dcp.chunk import MAX_BESIDES_NBYTES, Place, StoredChunk, read_part
from tensornp.models.reading.boxes import Met, boxes_of_row, meet
from tensornp.models.reading.selection import Range, Selection, Shape, select

_MAX_KEPT = 100
"""Packed chunks whose files are held open while one reads."""


class ChunkedEntry(StoredEntry):
    """A tensor of chunks, which make the whole of it; where `problem` says that they do not, none is read.

    Where in its item the elements of a chunk lie is kept once it is known.
    """

    __slots__ = ("_chunks", "_places", "_source")

    def __init__(self, name: str, shape: Shape, dtype: str, source: str, chunks: tuple[StoredChunk, ...]) -> None:
        super().__init__(name, "tensor", shape, dtype, 0, f"tnp.weights({source!r})[{name!r}].to_numpy()")
        self._source, self._chunks = source, chunks
        self._places: dict[int, Place] | None = None
        self.problem = why_no_array(shape, dtype)
        if dtype in KNOWN:
            self.nbytes = sum(math.prod(chunk.sizes) for chunk in chunks) * stored_dtype(dtype).itemsize

    @property
    def location(self) -> str:
        """The path of its file; of several, that by which they are opened together."""
        paths = {chunk.file.path for chunk in self._chunks}
        return paths.pop() if len(paths) == 1 else self._source

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where its chunks lie: the items as a whole, of those where the elements are not all of it."""
        return tuple(Extent(chunk.file.path, chunk.offset, chunk.nbytes) for chunk in self._chunks)

    @property
    def chunks(self) -> tuple[StoredChunk, ...]:
        """The boxes of the tensor, and where each lies."""
        return self._chunks

    @property
    def values_key(self) -> tuple[Any, ...]:
        """What is equal for the same values: where its chunks lie."""
        return type(self), self.shape, self.dtype, self._chunks

    @property
    def is_shared_out(self) -> bool:
        """Whether no chunk is packed."""
        return not any(chunk.form == "zstd" for chunk in self._chunks)

    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read, for which the items are looked into: some kB of each that is met.

        Of a packed chunk all bytes count. BadRequestError for an index that is none, or out of bounds.
        """
        self.check_readable()
        selection = self.select(index)
        nbytes = num_reads = 0
        with self._opened() as reader:
            for number, met in reader.met(selection.ranges):
                chunk = self._chunks[number]
                if chunk.form == "zstd":
                    nbytes, num_reads = nbytes + chunk.nbytes, num_reads + 1
                    continue
                with reader.looked_into(number) as (_, place):
                    own = select(met.own, chunk.sizes, self.bits_dtype.itemsize, place.strides)
                runs = [run.nbytes for run in own.runs()]
                nbytes, num_reads = nbytes + sum(runs), num_reads + len(runs)
        return ReadPlan(nbytes, num_reads, selection.result_shape)

    @contextmanager
    def _opened(self) -> Iterator[_ChunksReader]:
        """Return what opens the files as they are needed; ChangedFileError if one is not as it was listed."""
        if self._places is None:
            self._places = {}
        with ExitStack() as stack:
            yield _ChunksReader(self, self._places, stack)

    def _check_unchanged(self) -> None:
        for file in {chunk.file for chunk in self._chunks}:
            with file.opened():
                pass

    def _bits_at(self, opened: _ChunksReader, selection: Selection) -> Array:
        return opened.bits(selection)

    def _flat(self, opened: _ChunksReader, first: int, count: int) -> Array:
        return opened.flat(first, count)


class _ChunksReader:
    """Reads the chunks of an entry, of which there may be more than files that can be open at once.

    Several threads may use it, where no chunk is packed.
    """

    def __init__(self, entry: ChunkedEntry, places: dict[int, Place], stack: ExitStack) -> None:
        assert entry.shape is not None
        self._chunks, self._shape, self._dtype = entry.chunks, entry.shape, entry.bits_dtype
        self._dtype_name, self._places, self._stack = entry.dtype, places, stack
        self._kept: dict[int, ByteSource] = {}
        by_rows = sorted(range(len(self._chunks)), key=lambda i: self._chunks[i].offsets[:1])
        self._order = by_rows
        self._rows = [self._chunks[i].offsets[0] for i in by_rows] if self._shape else []
        self._max_rows = max((chunk.sizes[0] for chunk in self._chunks), default=0) if self._shape else 0

    def bits(self, selection: Selection) -> Array:
        if len(self._chunks) == 1:
            with self.looked_into(0) as (source, place):
                if place.strides is not None:
                    selection = replace(selection, strides=tuple(one * self._dtype.itemsize for one in place.strides))
                bits = selection.read(lambda target, first: source.read_into(target, place.offset + first), self._dtype)
                return place.meant(bits)
        made = np.empty(selection.counts, self._dtype)
        self._fill(made, selection.ranges)
        return np.asarray(made[selection.final])

    def flat(self, first: int, count: int) -> Array:
        made = np.empty(count, self._dtype)
        done = 0
        for box in boxes_of_row(first, count, self._shape):
            ranges = tuple(Range(offset, size, 1) for offset, size in zip(*box, strict=True))
            part = made[done : done + math.prod(box.sizes)]
            self._fill(part.reshape(box.sizes), ranges)
            done += part.size
        return made

    def met(self, ranges: tuple[Range, ...]) -> Iterator[tuple[int, Met]]:
        """Yield the chunks that have some of the wanted indices."""
        numbers = self._order
        if ranges and ranges[0].num:
            first, num, step = ranges[0]
            low = bisect_left(self._rows, first - self._max_rows + 1)
            numbers = numbers[low : bisect_right(self._rows, first + (num - 1) * step)]
        for number in numbers:
            met = meet(ranges, self._chunks[number].box)
            if met is not None:
                yield number, met

    @contextmanager
    def looked_into(self, number: int) -> Iterator[tuple[ByteSource, Place]]:
        """Return the item of a chunk, and where in it the elements lie."""
        chunk = self._chunks[number]
        with ExitStack() as stack:
            source = self._kept.get(number)
            if source is None:
                # What is packed is read on where the last read ended.
                is_kept = chunk.form == "zstd" and len(self._kept) < _MAX_KEPT
                there = (self._stack if is_kept else stack).enter_context(chunk.file.opened())
                source = chunk.source(there, math.prod(chunk.sizes) * self._dtype.itemsize + MAX_BESIDES_NBYTES)
                if is_kept:
                    self._kept[number] = source
            place = self._places.get(number)
            if place is None:
                place = self._places[number] = chunk.place(source, self._dtype_name)
            yield source, place

    def _fill(self, made: Array, ranges: tuple[Range, ...]) -> None:
        for number, met in self.met(ranges):
            with self.looked_into(number) as (source, place):
                made[met.wanted] = read_part(source, place, met.own, self._chunks[number].sizes, self._dtype)

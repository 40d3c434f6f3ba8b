"""Read tensors stored in chunks; an index reads only the bytes it needs."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import why_no_array
from tensornp.models.entries.source import Called
from tensornp.models.entries.stored import ReadPlan, StoredSource
from tensornp.models.files.byte_range import ByteSource
from tensornp.models.files.source_file import Bytes, Extent
from tensornp.models.formats.dcp.chunk import MAX_BESIDES_NBYTES, Place, StoredChunk
from tensornp.models.reading.take import Array, Ranges, Shape, boxes_of_row, taken_by

_MAX_KEPT_NBYTES = 2**28
"""Bytes of unpacked chunks that are kept for the next read; a single one may be larger."""


def chunked(
    name: str, shape: Shape, dtype: str, folder: str, chunks: tuple[StoredChunk, ...], problem: str = ""
) -> WeightEntry:
    """Return a tensor of chunks; none is read if there is a `problem`."""
    nbytes = sum(math.prod(chunk.sizes) for chunk in chunks) * stored_dtype(dtype).itemsize if dtype in KNOWN else 0
    source, code = ChunkSource(shape, dtype, folder, chunks), f"tnp.weights({folder!r})[{name!r}].to_numpy()"
    problem = problem or why_no_array(shape, dtype)
    return WeightEntry(name, "tensor", shape, dtype, nbytes, source, code, problem=problem)


@dataclass(frozen=True, slots=True)
class ChunkSource(StoredSource):
    """Chunks that make a tensor, in files that are opened together as `folder`.

    Where in its item the elements of a chunk lie is kept in `places` once it is known.
    """

    shape: Shape
    dtype: str
    folder: str
    chunks: tuple[StoredChunk, ...]
    places: dict[int, Place] = field(default_factory=dict, compare=False, repr=False)

    @property
    def location(self) -> str:
        """The path of its file, or the folder of several files."""
        paths = {chunk.file.path for chunk in self.chunks}
        return paths.pop() if len(paths) == 1 else self.folder

    @property
    def dtype_of_values(self) -> str:
        """That of the elements."""
        return self.dtype

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The bytes of the chunks, with the rest of their items."""
        return tuple(Extent(chunk.file.path, chunk.offset, chunk.nbytes) for chunk in self.chunks)

    @property
    def files(self) -> frozenset[Bytes]:
        """The files of all chunks."""
        return frozenset(chunk.file for chunk in self.chunks)

    @property
    def is_shared_out(self) -> bool:
        """Whether no chunk is packed."""
        return not any(chunk.form == "zstd" for chunk in self.chunks)

    def plan(self, called: Called, index: Any) -> ReadPlan:
        """Return the plan of `to_numpy`; reads some kB of each item.

        Of a packed chunk all bytes count.
        """
        taken = taken_by(index, self.shape)
        nbytes = num_reads = 0
        with self.reading(called) as reader:
            for number, met in reader.met(taken.ranges):
                chunk = self.chunks[number]
                if chunk.form == "zstd":
                    nbytes, num_reads = nbytes + chunk.nbytes, num_reads + 1
                    continue
                with reader.looked_into(number) as (_, place):
                    reads = place.reads(met.own, chunk.sizes, stored_dtype(self.dtype).itemsize)
                nbytes, num_reads = nbytes + reads.nbytes, num_reads + reads.num
        return ReadPlan(nbytes, num_reads, taken.shape)

    @contextmanager
    def reading(self, called: Called, *, is_whole: bool = False) -> Iterator[_ChunksReader]:
        """Return a reader that opens files on demand; raises ChangedFileError."""
        yield _ChunksReader(self)

    def elements(self, opened: _ChunksReader, ranges: Ranges) -> Array:
        """Return the elements in some ranges."""
        return _meant(opened.box(ranges))

    def row(self, opened: _ChunksReader, first: int, count: int) -> Array:
        """Return so many elements from one on, in the order of their indices."""
        return _meant(opened.row(first, count))


def _meant(bits: Array) -> Array:
    """Return elements; any byte except 0 is True."""
    return np.asarray(bits.view(np.uint8) != 0) if bits.dtype.kind == "b" else bits


class _ChunksReader:
    """Reads chunks; there may be more of them than open files.

    Several threads may use it, where no chunk is packed.
    """

    def __init__(self, source: ChunkSource) -> None:
        self._chunks, self._shape, self._dtype = source.chunks, source.shape, source.dtype
        self._item, self._places = stored_dtype(source.dtype), source.places
        self._kept: dict[int, ByteSource] = {}
        self._kept_nbytes = 0
        by_rows = sorted(range(len(self._chunks)), key=lambda i: self._chunks[i].offsets[:1])
        self._order = by_rows
        self._rows = [self._chunks[i].offsets[0] for i in by_rows] if self._shape else []
        self._max_rows = max((chunk.sizes[0] for chunk in self._chunks), default=0) if self._shape else 0

    def box(self, ranges: Ranges) -> Array:
        """Return the elements in some ranges; those of the only chunk as they are read."""
        if len(self._chunks) == 1:
            with self.looked_into(0) as (source, place):
                return place.read(source, ranges, self._shape, self._item)
        made = np.empty(tuple(map(len, ranges)), self._item)
        self._fill(made, ranges)
        return made

    def row(self, first: int, count: int) -> Array:
        """Return so many elements from one on."""
        made = np.empty(count, self._item)
        done = 0
        for box in boxes_of_row(first, count, self._shape):
            sizes = tuple(map(len, box))
            part = made[done : done + math.prod(sizes)]
            self._fill(part.reshape(sizes), box)
            done += part.size
        return made

    def met(self, ranges: Ranges) -> Iterator[tuple[int, Met]]:
        """Yield the chunks that have some of the wanted indices."""
        numbers = self._order
        if ranges and ranges[0]:
            low = bisect_left(self._rows, min(ranges[0]) - self._max_rows + 1)
            numbers = numbers[low : bisect_right(self._rows, max(ranges[0]))]
        for number in numbers:
            met = meet(ranges, self._chunks[number].offsets, self._chunks[number].sizes)
            if met is not None:
                yield number, met

    @contextmanager
    def looked_into(self, number: int) -> Iterator[tuple[ByteSource, Place]]:
        """Return the item of a chunk, and where in it the elements lie."""
        chunk = self._chunks[number]
        with ExitStack() as stack:
            source = self._kept.get(number)
            if source is None:
                nbytes = math.prod(chunk.sizes) * self._item.itemsize
                source = chunk.source(stack.enter_context(chunk.file.opened()), nbytes + MAX_BESIDES_NBYTES)
                if chunk.form == "zstd":
                    # The next read of a packed chunk does not unpack it again.
                    if self._kept_nbytes + nbytes > _MAX_KEPT_NBYTES:
                        self._kept.clear()
                        self._kept_nbytes = 0
                    self._kept[number] = source
                    self._kept_nbytes += nbytes
            place = self._places.get(number)
            if place is None:
                with chunk.file.scanned():
                    place = self._places[number] = chunk.place(source, self._dtype)
            yield source, place

    def _fill(self, made: Array, ranges: Ranges) -> None:
        for number, met in self.met(ranges):
            with self.looked_into(number) as (source, place):
                made[met.wanted] = place.read(source, met.own, self._chunks[number].sizes, self._item)


class Met(NamedTuple):
    """The wanted indices of a box, as places in the result and ranges in the box."""

    wanted: tuple[slice, ...]
    own: Ranges


def meet(ranges: Ranges, offsets: Shape, sizes: Shape) -> Met | None:
    """Return the wanted indices that lie in a box, or None if none does."""
    wanted: list[slice] = []
    own: list[range] = []
    for one, offset, size in zip(ranges, offsets, sizes, strict=True):
        step, last = one.step, offset + size - 1
        near, far = (offset, last) if step > 0 else (last, offset)
        low, high = max(-((one.start - near) // step), 0), min((far - one.start) // step + 1, len(one))
        if low >= high:
            return None
        wanted.append(slice(low, high))
        own.append(range(one[low] - offset, one[high - 1] - offset + (1 if step > 0 else -1), step))
    return Met(tuple(wanted), tuple(own))

"""Read tensors stored in chunks; an index reads only the bytes it needs."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.strides import unless_in_order
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import FileSource, why_no_array
from tensornp.models.entries.stored import ReadPlan, StoredSource
from tensornp.models.files.source_file import Extent, ListedFile
from tensornp.models.files.zip_directory import ByteRange
from tensornp.models.formats.torch_save import read_torch_zip, why_unread
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.torch_pickle import PickledTensor
from tensornp.models.reading.codec import AS_STORED, LazySigns
from tensornp.models.reading.take import Array, Ranges, Shape, as_slice, boxes_of_row, taken_by


def chunked(
    name: str, shape: Shape, dtype: str, folder: str, chunks: tuple[StoredChunk, ...], problem: str = ""
) -> WeightEntry:
    """Return a tensor of chunks; none is read if there is a `problem`."""
    nbytes = sum(math.prod(chunk.sizes) for chunk in chunks) * stored_dtype(dtype).itemsize if dtype in KNOWN else 0
    source, code = ChunkSource(shape, dtype, folder, chunks), f"tnp.weights({folder!r})[{name!r}].to_numpy()"
    problem = problem or why_no_array(shape, dtype)
    return WeightEntry(name, "tensor", shape, dtype, nbytes, source, code, problem=problem)


@dataclass(frozen=True)
class ChunkSource(StoredSource):
    """Chunks that make a tensor, in the files of a folder; files are opened on demand."""

    shape: Shape
    dtype: str
    folder: str
    chunks: tuple[StoredChunk, ...]
    _sources: dict[int, FileSource] = field(default_factory=dict, compare=False, repr=False)

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
        return tuple(chunk.file.extent(chunk.offset, chunk.nbytes) for chunk in self.chunks)

    @property
    def is_shared_out(self) -> bool:
        """Return True: each chunk is read by itself."""
        return True

    def plan(self, index: Any) -> ReadPlan:
        """Return the plan of `to_numpy`; reads some kB of each item."""
        taken = taken_by(index, self.shape)
        plans = [self._source(n).plan(tuple(map(as_slice, met.own))) for n, met in self._met(taken.ranges)]
        return ReadPlan(sum(one.nbytes_read for one in plans), sum(one.num_reads for one in plans), taken.shape)

    def reading(self) -> AbstractContextManager[None]:
        """Open nothing: there may be more files than can be open."""
        return nullcontext()

    def elements(self, opened: None, ranges: Ranges) -> Array:
        """Return the elements in some ranges; those of the only chunk as they are read."""
        if len(self.chunks) == 1:
            return self._part(0, ranges)
        made = np.empty(tuple(map(len, ranges)), stored_dtype(self.dtype))
        self._fill(made, ranges)
        return made

    def row(self, opened: None, first: int, count: int) -> Array:
        """Return so many elements from one on, in the order of their indices."""
        made = np.empty(count, stored_dtype(self.dtype))
        done = 0
        for box in boxes_of_row(first, count, self.shape):
            sizes = tuple(map(len, box))
            part = made[done : done + math.prod(sizes)]
            self._fill(part.reshape(sizes), box)
            done += part.size
        return made

    def _fill(self, made: Array, ranges: Ranges) -> None:
        for number, met in self._met(ranges):
            made[met.wanted] = self._part(number, met.own)

    def _source(self, number: int) -> FileSource:
        """Return the elements of a chunk, whose item is looked into once."""
        if number not in self._sources:
            self._sources[number] = self.chunks[number].source(self.dtype)
        return self._sources[number]

    def _part(self, number: int, ranges: Ranges) -> Array:
        source = self._source(number)
        with source.reading() as there:
            return source.elements(there, ranges)

    @cached_property
    def _rows(self) -> tuple[list[int], list[int], int]:
        """The chunks by their first rows, these rows, and the most rows of a chunk."""
        order = sorted(range(len(self.chunks)), key=lambda number: self.chunks[number].offsets[:1])
        first = [self.chunks[number].offsets[0] for number in order] if self.shape else []
        return order, first, max((chunk.sizes[0] for chunk in self.chunks), default=0) if self.shape else 0

    def _met(self, ranges: Ranges) -> Iterator[tuple[int, Met]]:
        """Yield the chunks that have some of the wanted indices."""
        numbers, rows, max_rows = self._rows
        if ranges and ranges[0]:
            low = bisect_left(rows, min(ranges[0]) - max_rows + 1)
            numbers = numbers[low : bisect_right(rows, max(ranges[0]))]
        for number in numbers:
            met = meet(ranges, self.chunks[number].offsets, self.chunks[number].sizes)
            if met is not None:
                yield number, met


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


MAX_BESIDES_NBYTES = 2**20
"""Bytes of the directory and the pickle of a tensor's item, each: there is one tensor in it."""


@contextmanager
def opened_item(file: ListedFile, offset: int, nbytes: int) -> Iterator[ByteRange]:
    """Open the bytes of an item."""
    with file.scanned(), file.opened() as there:
        said = f"{file.path!r}, from byte {offset:,} on,"
        yield ByteRange(there, offset, nbytes, said)


class StoredChunk(NamedTuple):
    """A box of a tensor, and the bytes that hold it: bare elements, or an item of `torch.save`."""

    offsets: Shape
    sizes: Shape
    file: ListedFile
    offset: int
    nbytes: int
    is_item: bool = True

    def source(self, dtype: str) -> FileSource:
        """Return its elements; CheckpointError if the item does not fit its shape."""
        if not self.is_item:
            return FileSource(self.sizes, dtype, self.file, self.offset)
        with opened_item(self.file, self.offset, self.nbytes) as item:
            found, storages, is_swapped, _ = read_torch_zip(item, MAX_BESIDES_NBYTES)
        tensor = found.root
        if type(tensor) is not PickledTensor or tensor.storage is None:
            raise CheckpointError(f"{item.said} is not a tensor of torch.save")
        record = storages.get(tensor.storage.key)
        problem = why_unread(tensor, record)
        if tensor.quantizer is not None:
            problem = problem or "it is quantized, which no chunk is"
        if is_swapped:
            problem = problem or "its storage has its bytes in big-endian order"
        if problem or record is None:
            raise CheckpointError(f"{item.said} has no values to read: {problem}")
        if (tensor.dtype, tensor.shape) != (dtype, self.sizes):
            has = f"{shown_name(tensor.dtype)} of shape {tensor.shape}"
            raise CheckpointError(f"{item.said} holds {has}, where {dtype} of shape {self.sizes} should be")
        first = self.offset + record.offset
        return FileSource(
            self.sizes, dtype, self.file, first + tensor.offset * stored_dtype(dtype).itemsize,
            unless_in_order(self.sizes, tensor.strides),
            codecs=() if tensor.lazy == AS_STORED else (LazySigns(dtype, tensor.lazy),),
        )  # fmt: skip

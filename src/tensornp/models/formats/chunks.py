"""Tensors stored in chunks; an index reads only the bytes it needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.errors import CheckpointError
from tensornp.models.entries.in_file import FileSource, ReadPlan, StoredSource
from tensornp.models.entries.take import Array, Ranges, Shape, as_slice, taken_by
from tensornp.models.files.source_file import Extent, ListedFile
from tensornp.models.files.zip_directory import ByteRange
from tensornp.models.formats.torch_save import torch_zip_of, why_unread
from tensornp.models.pickles.torch_pickle import PickledTensor


@contextmanager
def opened_item(file: ListedFile, offset: int, nbytes: int) -> Iterator[ByteRange]:
    with file.scanned() as there:
        yield ByteRange(there, offset, nbytes, f"{file.path!r}, from byte {offset:,} on,")


class StoredChunk(NamedTuple):
    """A box of a tensor, and the bytes of the item of `torch.save` that holds it."""

    offsets: Shape
    sizes: Shape
    file: ListedFile
    offset: int
    nbytes: int

    def source(self, dtype: str) -> FileSource:
        """Return its elements; CheckpointError if the item does not fit its shape."""
        with opened_item(self.file, self.offset, self.nbytes) as item:
            found, storages = torch_zip_of(item)
        tensor: Any = found.root
        record = storages.get(tensor.storage.key) if type(tensor) is PickledTensor and tensor.storage else None
        problem = why_unread(tensor, record) if record is not None else "it is not a tensor of torch.save"
        if not problem and tensor.quantizer is not None:
            problem = "it is quantized, which no chunk is"
        if not problem and (tensor.dtype, tensor.shape) != (dtype, self.sizes):
            problem = f"it is {tensor.dtype} of shape {tensor.shape}, and {dtype} of shape {self.sizes} is listed"
        if problem or record is None:
            raise CheckpointError(f"{item.said} has no values to read: {problem}")
        first = self.offset + record.offset + tensor.offset * stored_dtype(dtype).itemsize
        return FileSource(self.sizes, dtype, self.file, first, tensor.strides)


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
        return self.dtype

    @property
    def extents(self) -> tuple[Extent, ...]:
        return tuple(chunk.file.extent(chunk.offset, chunk.nbytes) for chunk in self.chunks)

    def plan(self, index: object) -> ReadPlan:
        """Return the plan of `to_numpy`; reads some kB of each item."""
        taken = taken_by(index, self.shape)
        plans = [self._source(n).plan(tuple(map(as_slice, own))) for n, _, own in self._met(taken.ranges)]
        return ReadPlan(sum(one.nbytes_read for one in plans), sum(one.num_reads for one in plans), taken.shape)

    def elements(self, ranges: Ranges) -> Array:
        made = np.empty(tuple(map(len, ranges)), stored_dtype(self.dtype))
        for number, wanted, own in self._met(ranges):
            made[wanted] = self._source(number).elements(own)
        return made

    def _source(self, number: int) -> FileSource:
        if number not in self._sources:
            self._sources[number] = self.chunks[number].source(self.dtype)
        return self._sources[number]

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        """The first index of each chunk along each dimension, and the one behind its last."""
        first = np.array([chunk.offsets for chunk in self.chunks], np.int64).reshape(len(self.chunks), -1)
        return first, first + np.array([chunk.sizes for chunk in self.chunks], np.int64).reshape(first.shape)

    def _met(self, ranges: Ranges) -> Iterator[tuple[int, tuple[slice, ...], Ranges]]:
        """Yield each chunk with some of the wanted indices: their places in the result and in the chunk."""
        first, end = self._bounds
        if not all(ranges):
            return
        is_met = (first <= [max(axis) for axis in ranges]) & (end > [min(axis) for axis in ranges])
        for number in map(int, np.flatnonzero(is_met.all(1))):
            chunk = self.chunks[number]
            met = [_meet(*axis) for axis in zip(ranges, chunk.offsets, chunk.sizes, strict=True)]
            if all(own for _, own in met):
                yield number, tuple(wanted for wanted, _ in met), tuple(own for _, own in met)


def _meet(wanted: range, offset: int, size: int) -> tuple[slice, range]:
    """Return the places of the wanted indices that lie in a chunk, and these indices in the chunk."""
    step, last = wanted.step, offset + size - 1
    near, far = (offset, last) if step > 0 else (last, offset)
    low, high = max(-((wanted.start - near) // step), 0), min((far - wanted.start) // step + 1, len(wanted))
    if low >= high:
        return slice(0), range(0)
    own = range(wanted[low] - offset, wanted[high - 1] - offset + (1 if step > 0 else -1), step)
    return slice(low, high), own


def why_not_whole(shape: Shape, boxes: list[tuple[Shape, Shape]]) -> str:
    """Return why boxes, as first indices and sizes, do not cover a tensor exactly once; else ``""``."""
    for offsets, sizes in boxes:
        if len(offsets) != len(shape) or len(sizes) != len(shape):
            return "a chunk has another number of dimensions"
        if any(offset + size > n for n, offset, size in zip(shape, offsets, sizes, strict=True)):
            return f"the chunk at {offsets} of {sizes} reaches beyond its shape"
    boxes = [box for box in boxes if 0 not in box[1]]
    if len(boxes) > 1 and _is_overlapping(boxes):
        return "its chunks overlap"
    missing = math.prod(shape) - sum(math.prod(sizes) for _, sizes in boxes)
    return f"chunks with {missing:,} of its {math.prod(shape):,} elements are missing" if missing else ""


def _is_overlapping(boxes: list[tuple[Shape, Shape]]) -> bool:
    """Sweep along the dimension that separates most boxes, and compare those that are met at once."""
    if not boxes[0][0]:
        return True
    axis = max(range(len(boxes[0][0])), key=lambda d: len({offsets[d] for offsets, _ in boxes}))
    active: list[tuple[Shape, Shape]] = []
    for box in sorted(boxes, key=lambda one: one[0][axis]):
        active = [one for one in active if one[0][axis] + one[1][axis] > box[0][axis]]
        for one in active:
            if all(i < j + m and j < i + n for i, n, j, m in zip(*one, *box, strict=True)):
                return True
        active.append(box)
    return False

"""Folders of `torch.distributed.checkpoint`: one entry for each tensor.

Items lie in `.distcp` files, and `.metadata` says where; it is read and never run. No item of a tensor is read before
its values are asked for.
"""

from __future__ import annotations

import math
from pathlib import PurePath

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.files.address import Place, why_outside
from tensornp.models.files.listed import listed
from tensornp.models.files.source_file import ListedFile, overlapping
from tensornp.models.formats.contents import Contents, problems_of
from tensornp.models.formats.dcp.chunked import ChunkSource, StoredChunk, chunked
from tensornp.models.formats.dcp.metadata import Item, Told, ToldChunk, ToldTensor, optimizers_of, read_dcp_metadata
from tensornp.models.formats.dcp.values import ByteValue, ByteValues
from tensornp.models.formats.safetensors import StoredTensor, read_header, saved_offsets
from tensornp.models.formats.table import METADATA
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, cut, shown_name
from tensornp.models.reading.take import Shape

_MAX_CHUNKS = 2**16


def open_dcp(folder: Place) -> Contents:
    """Return the weights, other values, optimizers and problems of a checkpoint."""
    with listed(folder / METADATA) as file:
        told = read_dcp_metadata(file)
    files = _Files(folder)
    entries = [_entry(files, str(folder), name, tensor, told) for name, tensor in told.tensors.items()]
    stored = {name: _value(files, item) for name, item in told.values.items()}
    values = ByteValues(told.said, stored)
    optimizers, entries = optimizers_of(told, _without_overlaps(entries, stored), values)
    problems = [*told.problems, *values.problems({one.problem for one in entries}), *problems_of(entries)]
    return Contents(entries, values, problems, optimizers)


class _Files:
    """The files of a folder that hold items."""

    def __init__(self, folder: Place) -> None:
        self.folder = folder
        self._found: dict[str, ListedFile | str] = {}
        self._headers: dict[str, tuple[int, dict[str, StoredTensor], dict[str, Shape]] | str] = {}

    def of_item(self, item: Item) -> ListedFile | str:
        """Return the file of an item, or the reason why it is not read."""
        if type(item.place) is not str or item.place not in self._found:
            if why := why_outside(item.place):
                return why
            self._found[item.place] = _file(self.folder, item.place)
        file = self._found[item.place]
        if isinstance(file, str):
            return file
        if item.offset < 0 or item.nbytes < 0 or item.offset + item.nbytes > file.nbytes:
            return f"its item at byte {cut(f'{item.offset:,}', MAX_SHOWN)} lies outside of {shown_name(item.place)}"
        if item.transforms:
            return f"it is transformed by {', '.join(map(shown_name, item.transforms[:3]))}, which is not read"
        return file

    def chunk(self, name: str, told: ToldChunk, dtype: str) -> StoredChunk | str:
        """Return a chunk of the tensor of that name, or why it is not read."""
        offsets, sizes, item = told
        if item is None:
            return f"where its chunk at {offsets} lies is not told"
        nbytes = math.prod(sizes) * stored_dtype(dtype).itemsize
        file = self.of_item(item)
        if isinstance(file, str):
            return file
        if item.nbytes == nbytes:
            # A zip is longer than its tensor.
            return self._in_safetensors(file, item.offset, name, told, dtype)
        if item.nbytes < nbytes:
            return f"its chunk at {offsets} needs {nbytes:,} bytes, and its item has {item.nbytes:,}"
        return StoredChunk(offsets, sizes, file, item.offset, item.nbytes)

    def _in_safetensors(
        self, file: ListedFile, start: int, name: str, told: ToldChunk, dtype: str
    ) -> StoredChunk | str:
        """Return a chunk of a file that has a header of its own."""
        if file.path not in self._headers:
            try:
                header = read_header(file, start)
                tensors = {one.name: one for one in header.tensors}
                self._headers[file.path] = start, tensors, saved_offsets(header.metadata)
            except CheckpointError as error:
                self._headers[file.path] = str(error)
        found = self._headers[file.path]
        if isinstance(found, str):
            return found
        first, tensors, begins = found
        stored = tensors.get(name)
        if stored is None or start != first or begins.get(name, told.offsets) != told.offsets:
            return f"its chunk at {told.offsets} is not in {shown_name(PurePath(file.path).name)}"
        if stored.problem or (stored.dtype, stored.shape) != (dtype, told.sizes):
            why = stored.problem or f"it is {stored.dtype} of shape {stored.shape} there"
            return f"its chunk at {told.offsets} is not read: {why}"
        return StoredChunk(told.offsets, told.sizes, file, stored.offset, stored.nbytes, is_item=False)


def _file(folder: Place, name: str) -> ListedFile | str:
    """Return a file, or why it is not read; of one elsewhere, a byte is asked for."""
    try:
        with listed(folder / name, 1) as file:
            return file
    except CheckpointError as error:
        return f"its file is not read: {cut(str(error), MAX_TOLD)}"


def _value(files: _Files, item: Item | None) -> ByteValue:
    found = files.of_item(item) if item is not None else "where it lies is not told"
    if item is None or isinstance(found, str):
        return ByteValue(None, 0, 0, str(found))
    return ByteValue(found, item.offset, item.nbytes)


def _entry(files: _Files, source: str, name: str, tensor: ToldTensor, told: Told) -> WeightEntry:
    """Return the entry of one tensor; it is read only if all of its chunks are there."""
    chunks: list[StoredChunk] = []
    problem = tensor.problem or _why_unread(tensor)
    for one in tensor.chunks[:_MAX_CHUNKS] if tensor.dtype in KNOWN else ():
        made = files.chunk(name, one, tensor.dtype)
        if isinstance(made, str):
            problem = problem or made
        else:
            chunks.append(made)
    entry = chunked(name, tensor.shape, tensor.dtype, source, tuple(chunks), problem)
    return entry._with_(wanted_imports=told.wanted) if told.wanted else entry


def _why_unread(tensor: ToldTensor) -> str:
    if tensor.dtype not in KNOWN:
        return f"its dtype {shown_name(tensor.dtype)} is not read"
    if len(tensor.chunks) > _MAX_CHUNKS:
        return f"it has {len(tensor.chunks):,} chunks, and {_MAX_CHUNKS:,} are read"
    return _why_not_whole(tensor.shape, [(one.offsets, one.sizes) for one in tensor.chunks])


def _without_overlaps(entries: list[WeightEntry], values: dict[str, ByteValue]) -> list[WeightEntry]:
    """Return the weights; items that overlap give their owners a problem."""
    owners: dict[str, str | ByteValue] = {}
    spans: dict[str, dict[str, tuple[int, int]]] = {}
    items: list[tuple[ListedFile | None, int, int, str | ByteValue]] = [
        (chunk.file, chunk.offset, chunk.nbytes, entry.name)
        for entry in entries
        if isinstance(entry._source, ChunkSource)
        for chunk in entry._source.chunks
        if chunk.is_item
    ]
    items += [(one.file, one.offset, one.nbytes, one) for one in values.values()]
    for file, offset, nbytes, owner in items:
        if file is not None:
            key = str(len(owners))
            owners[key] = owner
            spans.setdefault(file.path, {})[key] = offset, nbytes
    problems: dict[str, str] = {}
    for of_file in spans.values():
        for key in overlapping(of_file):
            owner, said = owners[key], f"its item at byte {of_file[key][0]:,} overlaps another one"
            if isinstance(owner, str):
                problems.setdefault(owner, said)
            else:
                owner.problem = owner.problem or said
    return [one._with_(problem=one.problem or problems[one.name]) if one.name in problems else one for one in entries]


_Box = tuple[Shape, Shape]
"""The first index and the size of a chunk in each dimension."""


def _why_not_whole(shape: Shape, boxes: list[_Box]) -> str:
    """Return why boxes do not cover a tensor exactly once; empty if they do."""
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


def _is_overlapping(boxes: list[_Box]) -> bool:
    """Sweep along the dimension that separates most boxes, and compare those that are met at once."""
    if not boxes[0][0]:
        return True
    axis = max(range(len(boxes[0][0])), key=lambda d: len({offsets[d] for offsets, _ in boxes}))
    active: list[_Box] = []
    for box in sorted(boxes, key=lambda one: one[0][axis]):
        active = [one for one in active if one[0][axis] + one[1][axis] > box[0][axis]]
        if any(_overlap(*one, *box) for one in active):
            return True
        active.append(box)
    return False


def _overlap(first: Shape, own: Shape, second: Shape, others: Shape) -> bool:
    return all(i < j + m and j < i + n for i, n, j, m in zip(first, own, second, others, strict=True))

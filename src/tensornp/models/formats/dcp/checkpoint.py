"""Folders of `torch.distributed.checkpoint`: one entry for each tensor.

Items lie in `.distcp` files, and `.metadata` says where; it is seen through, and never run. No item of a tensor is
looked into before its values are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.files.address import Place
from tensornp.models.files.listed import listed
from tensornp.models.formats.dcp.chunk import LostFile, StoredChunk
from tensornp.models.formats.dcp.chunked import ChunkSource, chunked
from tensornp.models.formats.dcp.item_files import ItemFiles
from tensornp.models.formats.dcp.metadata import Told, ToldTensor, optimizers_of, read_dcp_metadata
from tensornp.models.formats.dcp.names import METADATA
from tensornp.models.formats.dcp.values import MAX_LOOKED_INTO, ByteValue, ByteValues
from tensornp.models.names.quoted import shown_name
from tensornp.models.reading.take import Shape

_MAX_CHUNKS = 2**16


class Checkpoint:
    """The weights, other values, optimizers and problems of a checkpoint."""

    def __init__(self, folder: Place) -> None:
        with listed(folder / METADATA) as file:
            told = read_dcp_metadata(file)
        files = ItemFiles(folder)
        self._of_lost = files.lost.values()
        entries = [_entry(files, str(folder), name, tensor, told) for name, tensor in told.tensors.items()]
        values = {name: ByteValue.of(files, item) for name, item in told.values.items()}
        self.values = ByteValues(told.said, values)
        self.optimizers, self.entries = optimizers_of(told, _without_overlaps(entries, values), self.values)
        self.problems = [*told.problems, *self.values.problems(MAX_LOOKED_INTO, files.lost)]
        self.problems += _lost(self.entries, files)

    def unread(self) -> list[WeightEntry]:
        """Return unread weights, except those of lost files."""
        return [one for one in self.entries if not (one.problem and one.problem in self._of_lost)]


def _entry(files: ItemFiles, source: str, name: str, tensor: ToldTensor, told: Told) -> WeightEntry:
    """Return the entry of one tensor; it is read only if all of its chunks are there."""
    chunks: list[StoredChunk] = []
    problem = tensor.problem or _why_unread(tensor)
    for one in tensor.chunks[:_MAX_CHUNKS] if tensor.dtype in KNOWN else ():
        made = files.chunk(name, one, tensor.dtype)
        if isinstance(made, str):
            problem = problem or made
        else:
            chunks.append(made)
    lost = [one.file for one in chunks if isinstance(one.file, LostFile)]
    if lost and len(lost) == len(chunks):
        problem = problem or lost[0].why
    entry = chunked(name, tensor.shape, tensor.dtype, source, tuple(chunks), problem)
    are = f"chunks {'lies' if len(lost) == 1 else 'lie'} in files that are not there"
    said = f"{len(lost):,} of its {len(chunks):,} {are}" if lost and not problem else ""
    note = ", ".join(filter(None, (tensor.note, said)))
    return entry._with_(note=note, wanted_imports=told.wanted) if note or told.wanted else entry


def _lost(entries: list[WeightEntry], files: ItemFiles) -> Iterator[str]:
    """Yield a sentence on each lost file and the tensors with chunks in it."""
    of_file: dict[str, dict[str, None]] = {}
    for entry in entries:
        for chunk in entry._source.chunks if files.lost and isinstance(entry._source, ChunkSource) else ():
            if isinstance(chunk.file, LostFile):
                of_file.setdefault(chunk.file.why, {})[entry.name] = None
    for why in files.lost.values():
        names = [*of_file.get(why, ())]
        more = f" and {counted(len(names) - 1, 'more weight')}" if len(names) > 1 else ""
        yield f"{shown_name(names[0])}{more}: {why}" if names else why


def _why_unread(tensor: ToldTensor) -> str:
    if tensor.dtype not in KNOWN:
        return f"its dtype {shown_name(tensor.dtype)} is not read"
    if len(tensor.chunks) > _MAX_CHUNKS:
        return f"it has {len(tensor.chunks):,} chunks, and {_MAX_CHUNKS:,} are read"
    return _why_not_whole(tensor.shape, [_Box(one.offsets, one.sizes) for one in tensor.chunks])


def _without_overlaps(entries: list[WeightEntry], values: dict[str, ByteValue]) -> list[WeightEntry]:
    """Return the weights; items that overlap give their owners a problem."""
    items: list[tuple[str, int, int, str | ByteValue]] = [
        (chunk.file.path, chunk.offset, chunk.nbytes, entry.name)
        for entry in entries
        for chunk in (entry._source.chunks if isinstance(entry._source, ChunkSource) else ())
        if chunk.form not in ("plain", "lost")
    ]
    items += [(one.file.path, one.offset, one.nbytes, one) for one in values.values() if one.file is not None]
    problems: dict[str, str] = {}
    path, end = "", 0
    for at, offset, nbytes, owner in sorted(items, key=lambda item: item[:3]):
        if at == path and offset < end:
            problem = f"its item at byte {offset:,} overlaps another one"
            if isinstance(owner, str):
                problems.setdefault(owner, problem)
            else:
                owner.problem = owner.problem or problem
        path, end = at, max(end, offset + nbytes) if at == path else offset + nbytes
    return [one._with_(problem=one.problem or problems[one.name]) if one.name in problems else one for one in entries]


class _Box(NamedTuple):
    """The first index and the size of a chunk in each dimension."""

    offsets: Shape
    sizes: Shape


def _why_not_whole(shape: Shape, boxes: list[_Box]) -> str:
    """Return why boxes do not cover a tensor exactly once; empty if they do."""
    for box in boxes:
        if len(box.offsets) != len(shape) or len(box.sizes) != len(shape):
            return "a chunk has another number of dimensions"
        if any(offset + size > n for n, offset, size in zip(shape, *box, strict=True)):
            return f"the chunk at {box.offsets} of {box.sizes} reaches beyond its shape"
    boxes = [box for box in boxes if 0 not in box.sizes]
    if len(boxes) > 1 and _is_overlapping(boxes):
        return "its chunks overlap"
    missing = math.prod(shape) - sum(math.prod(box.sizes) for box in boxes)
    return f"chunks with {missing:,} of its {math.prod(shape):,} elements are missing" if missing else ""


def _is_overlapping(boxes: list[_Box]) -> bool:
    """Sweep along the dimension that tells most of them apart, and compare those that are met at once."""
    axis = max(range(len(boxes[0].offsets)), key=lambda d: len({box.offsets[d] for box in boxes}), default=0)
    if not boxes[0].offsets:
        return True
    active: list[_Box] = []
    for box in sorted(boxes, key=lambda one: one.offsets[axis]):
        active = [one for one in active if one.offsets[axis] + one.sizes[axis] > box.offsets[axis]]
        if any(_overlap(one, box) for one in active):
            return True
        active.append(box)
    return False


def _overlap(a: _Box, b: _Box) -> bool:
    return all(i < j + m and j < i + n for i, n, j, m in zip(a.offsets, a.sizes, b.offsets, b.sizes, strict=True))

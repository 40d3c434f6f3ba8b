"""Folders of `torch.distributed.checkpoint`: each tensor one entry, however many ranks have written its chunks.

Items lie in `.distcp` files, and `.metadata` says where; it is seen through, and never run. No item of a tensor is
looked into before its values are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from tensornp.models.reading.boxes import Box, why_not_whole

_MAX_CHUNKS = 2**16


class Checkpoint:
    """What a checkpoint holds: weights, other values, optimizers whose states are there, and what is wrong."""

    def __init__(self, folder: Place) -> None:
        with listed(folder / METADATA) as file:
            told = read_dcp_metadata(file)
        files = ItemFiles(folder, told.places())
        self._of_lost = files.lost.values()
        entries = [_entry(files, str(folder), name, tensor, told) for name, tensor in told.tensors.items()]
        values = {name: ByteValue.of(files, item) for name, item in told.values.items()}
        self.values = ByteValues(told.said, values)
        self.optimizers, self.entries = optimizers_of(told, _without_overlaps(entries, values), self.values)
        self.problems = [*told.problems, *self.values.problems(MAX_LOOKED_INTO, files.lost)]
        self.problems += _lost(self.entries, files)

    def unread(self) -> list[WeightEntry]:
        """Return the weights that are not read, but for lost files, each of which is one problem."""
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
    """Yield for each file that is lost whose chunks lie in it."""
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
    return why_not_whole(tensor.shape, [Box(one.offsets, one.sizes) for one in tensor.chunks])


def _without_overlaps(entries: list[WeightEntry], values: dict[str, ByteValue]) -> list[WeightEntry]:
    """Return the weights, and give a problem to those, and to the values, whose items have bytes of the one before."""
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

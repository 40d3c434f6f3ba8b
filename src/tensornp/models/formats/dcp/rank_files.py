"""Safetensors files that `torch.distributed.checkpoint` wrote for each rank, with no metadata but in their headers.

Each says where in its tensor a chunk begins; the shape of the whole is told by the chunk that reaches farthest.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.files.source_file import SourceFile
from tensornp.models.formats.dcp.chunk import StoredChunk
from tensornp.models.formats.dcp.chunked import chunked
from tensornp.models.formats.dcp.names import rank_of
from tensornp.models.formats.safetensors.header import read_header
from tensornp.models.formats.safetensors.saved_offsets import SHARDING_INFO, saved_offsets
from tensornp.models.reading.boxes import why_not_whole


class Shards(NamedTuple):
    """What the files of all ranks hold together, what they say of themselves, and what is wrong."""

    entries: list[WeightEntry]
    said: dict[str, str]
    problems: list[str]


def read_shards(folder: Path, names: list[str]) -> Shards:
    """Return the tensors, each put together; a file that is not sound hides no other."""
    chunks: dict[str, list[StoredChunk]] = {}
    dtypes: dict[str, dict[str, None]] = {}
    unread: dict[str, str] = {}
    said: dict[str, str] = {}
    problems = _missing(names)
    for name in names:
        try:
            file = SourceFile.at(folder / name)
            header = read_header(file)
        except CheckpointError as error:
            problems.append(NotListed(error))
            continue
        said |= {key: value for key, value in header.metadata.items() if key != SHARDING_INFO}
        begins = saved_offsets(header.metadata)
        for one in header.tensors:
            dtypes.setdefault(one.name, {})[one.dtype] = None
            offsets = begins.get(one.name)
            if one.problem or offsets is None or len(offsets) != len(one.shape):
                unread[one.name] = one.problem or f"{name} does not say where in it its chunk begins"
            offsets = offsets if offsets is not None and one.name not in unread else (0,) * len(one.shape)
            chunk = StoredChunk(offsets, one.shape, file, one.offset, one.nbytes, "plain")
            chunks.setdefault(one.name, []).append(chunk)
    entries = [_entry(folder, name, of_name, [*dtypes[name]], unread.get(name, "")) for name, of_name in chunks.items()]
    return Shards([*entries], said, problems)


def _entry(folder: Path, name: str, chunks: list[StoredChunk], dtypes: list[str], problem: str) -> WeightEntry:
    ndims = {len(chunk.sizes) for chunk in chunks}
    if not problem and (len(dtypes) > 1 or len(ndims) > 1):
        problem = "its chunks are of several dtypes or numbers of dimensions"
    ends = [[offset + size for offset, size in zip(*chunk.box, strict=True)] for chunk in chunks]
    shape = tuple(map(max, zip(*ends, strict=False))) if not problem else chunks[0].sizes
    problem = problem or why_not_whole(shape, [chunk.box for chunk in chunks])
    return chunked(name, shape, dtypes[0], str(folder), tuple(chunks), problem)


def _missing(names: list[str]) -> list[str]:
    """Return which ranks have no file, of those between others that have one."""
    found = set(map(rank_of, names))
    absent = [str(rank) for rank in range(1, max(found, default=0)) if rank not in found]
    if not absent:
        return []
    more = f" and {len(absent) - 6:,} more" if len(absent) > 6 else ""
    what = f"there is no file of shard {', '.join(absent[:6])}{more}"
    return [NotListed(f"{what}; what it may have held is not known")]

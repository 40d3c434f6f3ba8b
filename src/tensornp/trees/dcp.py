"""Folders of `torch.distributed.checkpoint`: each tensor one entry, however many ranks have written its chunks.

Items lie in `.distcp` files, and `.metadata` says where; it is seen through, and never run. No item of a tensor is
looked into before its values are asked for.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.decode import stored_dtype
from tensornp.errors import CheckpointError
from tensornp.trees.boxes import Box, why_not_whole
from tensornp.trees.chunked_entry import ChunkedEntry
from tensornp.trees.dcp_metadata import Item, ToldChunk, ToldTensor, read_dcp_metadata
from tensornp.trees.names import shown_name
from tensornp.trees.places import why_outside
from tensornp.trees.safetensors import StoredTensor, read_header
from tensornp.trees.selection import Shape
from tensornp.trees.source_file import SourceFile
from tensornp.trees.stored_chunk import Form, StoredChunk
from tensornp.trees.torch_file import TorchFile
from tensornp.trees.unpickled import sizes_of
from tensornp.trees.zstd import zstd_library

METADATA = ".metadata"
SHARDING_INFO = "DCP_SHARDING_INFO"
ITEMS_SUFFIX = ".distcp"
RANK_METADATA = re.compile(r"__(?P<rank>\d+)\.metadata")
_MAX_CHUNKS = 2**16
_PACKED = re.compile(r"stream\.zstd(@[^/]*)?/1(\..*)?")


def read_dcp(folder: Path, name: str = METADATA) -> TorchFile:
    """Return what a checkpoint holds; CheckpointError if its metadata is none, or not sound."""
    told = read_dcp_metadata(SourceFile.at(folder / name))
    files = _Files(folder)
    entries = [_entry(files, key, one, told.wanted) for key, one in told.tensors.items()]
    _mark_overlaps(entries)
    return TorchFile([*entries], told.said, told.problems)


def saved_offsets(metadata: dict[str, str]) -> dict[str, Shape]:
    """Return where in its tensor each chunk of a safetensors file begins; empty where the file does not say it."""
    try:
        told = json.loads(metadata.get(SHARDING_INFO, "{}"))
    except (ValueError, RecursionError):
        return {}
    pairs = told.items() if isinstance(told, dict) else ()
    found = {name: sizes_of(one.get("saved_offsets")) for name, one in pairs if isinstance(one, dict)}
    return {name: offsets for name, offsets in found.items() if offsets is not None}


class _Files:
    """The files of a folder that hold items, each looked for once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._found: dict[str, SourceFile | str] = {}
        self._headers: dict[tuple[str, int], tuple[dict[str, StoredTensor], dict[str, Shape]] | str] = {}

    def at(self, place: Any) -> SourceFile | str:
        """Return the file at a place in the folder, or why it is not opened."""
        if why := why_outside(place):
            return why
        if place not in self._found:
            try:
                self._found[place] = SourceFile.at(self.folder / place)
            except CheckpointError as error:
                self._found[place] = f"its file {shown_name(place)} cannot be read: {error}"
        return self._found[place]

    def in_safetensors(
        self, file: SourceFile, item: Item, name: str, chunk: ToldChunk, dtype: str
    ) -> StoredChunk | str:
        """Return a chunk of a file whose own header says where it lies, or why it is not read."""
        key = file.path, item.offset
        if key not in self._headers:
            try:
                header = read_header(file, item.offset)
                self._headers[key] = {one.name: one for one in header.tensors}, saved_offsets(header.metadata)
            except CheckpointError as error:
                self._headers[key] = str(error)
        found = self._headers[key]
        if isinstance(found, str):
            return found
        tensors, offsets = found
        stored = tensors.get(name)
        if stored is None or offsets.get(name, chunk.offsets) != chunk.offsets:
            return f"its chunk at {chunk.offsets} is not in {shown_name(item.place)}"
        if stored.problem or (stored.dtype, stored.shape) != (dtype, chunk.sizes):
            why = stored.problem or f"it is {stored.dtype} of shape {stored.shape} there"
            return f"its chunk at {chunk.offsets} is not read: {why}"
        return StoredChunk(chunk.offsets, chunk.sizes, file, stored.offset, stored.nbytes, "plain")


def _entry(files: _Files, name: str, tensor: ToldTensor, wanted: tuple[str, ...]) -> ChunkedEntry:
    """Return the entry of one tensor; it is read only if all of its chunks are there."""
    chunks: list[StoredChunk] = []
    problem = tensor.problem or _why_unread(tensor)
    for one in tensor.chunks if not problem else ():
        made = _chunk(files, name, one, tensor.dtype)
        if isinstance(made, str):
            problem = problem or made
        else:
            chunks.append(made)
    code = f"tensornp.weights({str(files.folder)!r})[{name!r}].to_numpy()"
    entry = ChunkedEntry(name, tensor.shape, tensor.dtype, code, str(files.folder), tuple(chunks))
    entry.problem, entry.wanted_imports = problem or entry.problem, wanted
    return entry


def _why_unread(tensor: ToldTensor) -> str:
    if tensor.dtype not in KNOWN:
        return f"its dtype {shown_name(tensor.dtype)} is not read"
    if len(tensor.chunks) > _MAX_CHUNKS:
        return f"it has {len(tensor.chunks):,} chunks, and {_MAX_CHUNKS:,} are read"
    return why_not_whole(tensor.shape, [Box(one.offsets, one.sizes) for one in tensor.chunks])


def _chunk(files: _Files, name: str, one: ToldChunk, dtype: str) -> StoredChunk | str:
    """Return a chunk, or why it is not read."""
    item = one.item
    if item is None:
        return f"where its chunk at {one.offsets} lies is not told"
    file = files.at(item.place)
    if isinstance(file, str):
        return file
    if item.offset < 0 or item.nbytes < 0 or item.offset + item.nbytes > file.nbytes:
        return f"its chunk at {one.offsets} lies outside of {shown_name(item.place)}"
    nbytes = math.prod(one.sizes) * stored_dtype(dtype).itemsize
    form: Form = "torch.save"
    if item.transforms:
        if why := why_transformed(item.transforms):
            return why
        form = "zstd"
    elif item.nbytes == nbytes:
        # A zip is longer than what it holds.
        return files.in_safetensors(file, item, name, one, dtype)
    elif item.nbytes < nbytes:
        return f"its chunk at {one.offsets} needs {nbytes:,} bytes, and its item has {item.nbytes:,}"
    return StoredChunk(one.offsets, one.sizes, file, item.offset, item.nbytes, form)


def why_transformed(transforms: tuple[str, ...]) -> str:
    """Return why bytes that were transformed are not read; empty where they are packed, and can be unpacked."""
    if len(transforms) > 1 or not _PACKED.fullmatch(transforms[0]):
        return f"it is transformed by {', '.join(map(shown_name, transforms[:3]))}, which is not known"
    return "" if zstd_library() else "it is packed by Zstandard; install zstandard to read it"


def _mark_overlaps(entries: list[ChunkedEntry]) -> None:
    """Give a problem to those whose items have bytes of the one before."""
    items = sorted(
        (chunk.file.path, chunk.offset, chunk.nbytes, number)
        for number, entry in enumerate(entries)
        for chunk in entry.chunks
        if chunk.form != "plain"
    )
    path, end = "", 0
    for at, offset, nbytes, number in items:
        if at == path and offset < end:
            entries[number].problem = entries[number].problem or f"its item at byte {offset:,} overlaps another one"
        path, end = at, max(end, offset + nbytes) if at == path else offset + nbytes

"""The files of a checkpoint that hold its items."""

from __future__ import annotations

import math
import re
from pathlib import PurePath
from typing import NamedTuple

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.errors import CheckpointError
from tensornp.models.files.address import Place, why_outside
from tensornp.models.files.listed import listed
from tensornp.models.files.source_file import ListedFile
from tensornp.models.files.zstd import zstd_library
from tensornp.models.formats.dcp.chunk import Form, LostFile, StoredChunk
from tensornp.models.formats.dcp.metadata import Item, ToldChunk
from tensornp.models.formats.safetensors import StoredTensor, read_header, saved_offsets
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, cut, shown_name
from tensornp.models.reading.take import Shape

_PACKED = re.compile(r"stream\.zstd(@[^/]*)?/1(\..*)?")
"""As `torch.distributed.checkpoint._extension` calls it."""


class _Header(NamedTuple):
    """The header of a safetensors file at `start`, or the reason why it is unread."""

    start: int
    tensors: dict[str, StoredTensor]
    offsets: dict[str, Shape]
    problem: str = ""


class ItemFiles:
    """The files of a folder; each item is checked before it is believed.

    Of those that are `lost`, it is told why, by the name.
    """

    def __init__(self, folder: Place) -> None:
        self.folder = folder
        self._found: dict[str, ListedFile | str] = {}
        self.lost: dict[str, str] = {}
        self._headers: dict[str, _Header] = {}

    def of_item(self, item: Item) -> tuple[ListedFile, Form] | str:
        """Return the file and the form of an item, or the reason why it is not read."""
        if type(item.place) is not str or item.place not in self._found:
            if why := why_outside(item.place):
                return why
            found = self._found[item.place] = _file(self.folder, item.place)
            if isinstance(found, str):
                self.lost[item.place] = found
        file = self._found[item.place]
        if isinstance(file, str):
            return file
        if item.offset < 0 or item.nbytes < 0 or item.offset + item.nbytes > file.nbytes:
            return f"its item at byte {cut(f'{item.offset:,}', MAX_SHOWN)} lies outside of {shown_name(item.place)}"
        if not item.transforms:
            return file, "torch.save"
        if len(item.transforms) > 1 or not _PACKED.fullmatch(item.transforms[0]):
            return f"it is transformed by {', '.join(map(shown_name, item.transforms[:3]))}, which is not known"
        return (file, "zstd") if zstd_library() else "it is packed by Zstandard; install zstandard to read it"

    def chunk(self, name: str, told: ToldChunk, dtype: str) -> StoredChunk | str:
        """Return a chunk of the tensor of that name, or why it is not read."""
        offsets, sizes, item = told
        if item is None:
            return f"where its chunk at {offsets} lies is not told"
        found = self.of_item(item)
        if isinstance(found, str):
            # A damaged file can tell anything as its place.
            if type(item.place) is not str or item.place not in self.lost:
                return found
            lost = LostFile(str(self.folder / item.place), found)
            return StoredChunk(offsets, sizes, lost, 0, item.nbytes, "lost")
        file, form = found
        nbytes = math.prod(sizes) * stored_dtype(dtype).itemsize
        if form == "torch.save" and item.nbytes == nbytes:
            # A zip is longer than what it holds.
            return self._in_safetensors(file, item.offset, name, told, dtype)
        if form == "torch.save" and item.nbytes < nbytes:
            return f"its chunk at {offsets} needs {nbytes:,} bytes, and its item has {item.nbytes:,}"
        return StoredChunk(offsets, sizes, file, item.offset, item.nbytes, form)

    def _in_safetensors(
        self, file: ListedFile, start: int, name: str, told: ToldChunk, dtype: str
    ) -> StoredChunk | str:
        """Return a chunk of a file that has a header of its own."""
        header = self._headers.get(file.path) or self._headers.setdefault(file.path, _header(file, start))
        if header.problem:
            return header.problem
        stored = header.tensors.get(name)
        if stored is None or start != header.start or header.offsets.get(name, told.offsets) != told.offsets:
            return f"its chunk at {told.offsets} is not in {shown_name(PurePath(file.path).name)}"
        if stored.problem or (stored.dtype, stored.shape) != (dtype, told.sizes):
            why = stored.problem or f"it is {stored.dtype} of shape {stored.shape} there"
            return f"its chunk at {told.offsets} is not read: {why}"
        return StoredChunk(told.offsets, told.sizes, file, stored.offset, stored.nbytes, "plain")


def _file(folder: Place, name: str) -> ListedFile | str:
    """Return a file, or why it is not read; of one elsewhere, a byte is asked for."""
    try:
        with listed(folder / name, 1) as file:
            return file
    except CheckpointError as error:
        return f"its file is not read: {cut(str(error), MAX_TOLD)}"


def _header(file: ListedFile, start: int) -> _Header:
    try:
        header = read_header(file, start)
    except CheckpointError as error:
        return _Header(start, {}, {}, str(error))
    return _Header(start, {one.name: one for one in header.tensors}, saved_offsets(header.metadata))

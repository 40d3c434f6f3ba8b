"""What lies deflated in a file: it is inflated up to the bytes that are asked for, and never more than was told."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.errors import CheckpointError
from tensornp.trees.entry import Extent
from tensornp.trees.file_entry import FileEntry
from tensornp.trees.source_file import OpenFile, Reader, SourceFile
from tensornp.trees.stored_entry import ReadPlan, native, tensor_of

Array = np.ndarray[Any, Any]
_PIECE_NBYTES = 2**16
_RAW_DEFLATE = -zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Inflated:
    """Bytes that lie in `file` from `offset` on, deflated to `packed_nbytes`."""

    file: SourceFile
    offset: int
    packed_nbytes: int
    nbytes: int
    checksum: int

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.file.path

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """Open it for reads upwards; one that goes back begins anew."""
        with self.file.opened() as there:
            yield _Stream(self, there)


class _Stream(Reader):
    """One thread may read it."""

    def __init__(self, source: Inflated, there: OpenFile) -> None:
        self._source, self._there = source, there
        self._restart()

    def _restart(self) -> None:
        self._inflate = zlib.decompressobj(_RAW_DEFLATE)
        self._at = self._packed_at = self._checksum = 0

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        if offset < self._at:
            self._restart()
        while self._at < offset:
            self._piece(offset - self._at)
        view, done = memoryview(target.data), 0
        while done < len(view):
            piece = self._piece(len(view) - done)
            view[done : done + len(piece)] = piece
            done += len(piece)

    def _piece(self, most: int) -> bytes:
        """Return some of the next bytes; at the last one, all are compared with their checksum."""
        source, piece = self._source, b""
        most = min(most, _PIECE_NBYTES, source.nbytes - self._at)
        while not piece:
            packed = self._inflate.unconsumed_tail or self._packed()
            try:
                # Though nothing came: some bytes may wait inside.
                piece = self._inflate.decompress(packed, most) if most > 0 else b""
            except zlib.error as error:
                raise CheckpointError(f"{source.path!r} has bytes that cannot be inflated: {error}") from None
            if not piece and (most <= 0 or not packed or self._inflate.eof):
                raise CheckpointError(f"{source.path!r} has compressed bytes that end before byte {source.nbytes:,}")
        self._at += len(piece)
        self._checksum = zlib.crc32(piece, self._checksum)
        if self._at == source.nbytes and self._checksum != source.checksum:
            raise CheckpointError(f"{source.path!r} has compressed bytes that do not give their checksum")
        return piece

    def _packed(self) -> bytes:
        count = min(_PIECE_NBYTES, self._source.packed_nbytes - self._packed_at)
        data = self._there.read(self._source.offset + self._packed_at, count).tobytes()
        self._packed_at += count
        return data


class InflatedEntry(FileEntry):
    """A weight that is compressed: to read a part of it, all before that part is inflated too."""

    __slots__ = ()

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where it lies compressed."""
        packed = self._packed
        return (Extent(packed.path, packed.offset, packed.packed_nbytes),)

    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read at most."""
        return super().plan(index)._replace(nbytes_read=self._packed.packed_nbytes, num_reads=1)

    def values(self) -> Any:
        """Return a tensor of all values, since each part would be inflated from the beginning."""
        self.check_readable()
        return tensor_of(native(self._read(...)), self.dtype_of_values)

    @property
    def is_shared_out(self) -> bool:
        """Return False: each task would begin at the beginning."""
        return False

    @property
    def _packed(self) -> Inflated:
        assert isinstance(self._file, Inflated)
        return self._file

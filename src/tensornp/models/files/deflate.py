"""Unpack bytes that are packed by deflate, as they are read."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.errors import CheckpointError
from tensornp.models.files.source_file import Extent, ListedFile, Reader

Array = np.ndarray[Any, Any]


_PIECE_NBYTES = 2**16
_RAW_DEFLATE = -zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Inflated:
    """Bytes that lie in `file` from `offset` on, deflated to `packed_nbytes`."""

    file: ListedFile
    offset: int
    packed_nbytes: int
    nbytes: int
    checksum: int

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.file.path

    @property
    def is_stream(self) -> bool:
        """Return True."""
        return True

    def extent(self, offset: int, nbytes: int) -> Extent:
        """Return where all of it lies compressed."""
        return Extent(self.path, self.offset, self.packed_nbytes)

    @contextmanager
    def opened(self, *, is_whole: bool = False) -> Iterator[Reader]:
        """Open it for reads upwards; one that goes back begins anew."""
        with self.file.opened(is_whole=True) as there:
            yield _Stream(self, there)


class _Stream(Reader):
    """One thread may read it."""

    def __init__(self, source: Inflated, there: Reader) -> None:
        self._source, self._there = source, there
        self._restart()

    def _restart(self) -> None:
        self._inflate = zlib.decompressobj(_RAW_DEFLATE)
        self.at = self._packed_at = self._checksum = 0

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        if offset < self.at:
            self._restart()
        while self.at < offset:
            self._piece(offset - self.at)
        view, done = memoryview(target.data), 0
        while done < len(view):
            piece = self._piece(len(view) - done)
            view[done : done + len(piece)] = piece
            done += len(piece)

    def _piece(self, most: int) -> bytes:
        """Return some of the next bytes; at the last one, all are compared with their checksum."""
        source, piece = self._source, b""
        most = min(most, _PIECE_NBYTES, source.nbytes - self.at)
        while not piece:
            packed = self._inflate.unconsumed_tail or self._packed()
            try:
                # Though nothing came: some bytes may wait inside.
                piece = self._inflate.decompress(packed, most) if most > 0 else b""
            except zlib.error:
                said = f"compressed bytes, from byte {source.offset:,} on, that cannot be inflated"
                raise CheckpointError(f"{source.path!r} has {said}") from None
            if not piece and (most <= 0 or not packed or self._inflate.eof):
                raise CheckpointError(f"{source.path!r} has compressed bytes that end before byte {source.nbytes:,}")
        self.at += len(piece)
        self._checksum = zlib.crc32(piece, self._checksum)
        if self.at == source.nbytes and self._checksum != source.checksum:
            raise CheckpointError(f"{source.path!r} has compressed bytes that do not give their checksum")
        return piece

    def _packed(self) -> bytes:
        count = min(_PIECE_NBYTES, self._source.packed_nbytes - self._packed_at)
        data = self._there.read(self._source.offset + self._packed_at, count).tobytes()
        self._packed_at += count
        return data

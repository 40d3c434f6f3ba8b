"""A part of an open file as a file of its own."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np

from tensornp.errors import CheckpointError
from tensornp.models.files.source_file import Array, Reader


class ByteSource(Protocol):
    """Bytes that are read by their positions."""

    said: str

    @property
    def nbytes(self) -> int:
        """How many there are."""

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on; CheckpointError past the end."""


class ByteRange:
    """So many bytes of a file from `first` on; `said` names them in a sentence."""

    def __init__(self, there: Reader, first: int, nbytes: int, said: str) -> None:
        self._there, self._first = there, first
        self.nbytes, self.said = nbytes, said

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on; CheckpointError past the end."""
        check_inside(self, offset, target.nbytes)
        self._there.read_into(target, self._first + offset)


def check_inside(source: ByteSource, offset: int, nbytes: int) -> None:
    """Raise CheckpointError unless so many bytes from `offset` on are there."""
    if not 0 <= offset <= source.nbytes - nbytes:
        raise CheckpointError(f"{source.said} ends before byte {offset + nbytes:,}")


def read_bytes(source: ByteSource, offset: int, nbytes: int) -> bytes:
    """Return `nbytes` bytes at `offset`; raise CheckpointError past the end."""
    check_inside(source, offset, nbytes)
    made = np.empty(nbytes, np.uint8)
    source.read_into(made, offset)
    return made.tobytes()


class Readable:
    """File object of a byte source for `zipfile`; reads at most `max_nbytes` at once."""

    def __init__(self, source: ByteSource, max_nbytes: int) -> None:
        self._source, self._at, self._max_nbytes = source, 0, max_nbytes

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place, and return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._source.nbytes}[whence]
        if base + offset < 0:
            raise OSError("it begins later")
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, or as many as there are."""
        left = max(self._source.nbytes - self._at, 0)
        nbytes = left if size is None or size < 0 else min(size, left)
        if nbytes > self._max_nbytes:
            raise CheckpointError(f"{self._source.said} would have a directory of {nbytes:,} bytes")
        data = read_bytes(self._source, self._at, nbytes)
        self._at += nbytes
        return data

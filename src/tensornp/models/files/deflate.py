"""Bytes that are packed by deflate, unpacked as they are read, up to those that are asked for and never all at once."""

from __future__ import annotations

import copy
import threading
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
_MARKED_NBYTES, _MAX_MARKS = 2**22, 64
"""Bytes after which a place is kept, and how many are: each takes some 40 KiB."""


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
    def opened(self) -> Iterator[Reader]:
        """Open it for reads upwards; one that goes back begins anew."""
        with self.file.opened() as there:
            yield _Stream(self, there)


class _Stream(Reader):
    """One thread may read it."""

    def __init__(self, source: Inflated, there: Reader) -> None:
        self._source, self._there = source, there
        self._restart()

    def _restart(self) -> None:
        self._inflate = zlib.decompressobj(_RAW_DEFLATE)
        self.at = self._packed_at = self._checksum = 0

    def copy(self, there: Reader | None = None) -> _Stream:
        """Return a stream that goes on from here by itself, and perhaps reads the file that was opened anew."""
        made = copy.copy(self)
        made._inflate, made._there = self._inflate.copy(), there or self._there
        return made

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


class Marked:
    """Deflated bytes that are read again and again: places are kept, and what follows one is inflated from there on.

    Several threads may read it, one at a time; it is best read upwards.
    """

    def __init__(self, source: Inflated) -> None:
        self._source, self._lock = source, threading.Lock()
        self._last: _Stream | None = None
        self._marks: list[_Stream] = []
        self._step = _MARKED_NBYTES

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._source.path

    @property
    def is_stream(self) -> bool:
        """Return True."""
        return True

    def extent(self, offset: int, nbytes: int) -> Extent:
        """Return where all of it lies compressed."""
        return self._source.extent(offset, nbytes)

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """Open it for some reads."""
        with self._lock, self._source.file.opened() as there:
            yield _MarkedReader(self, there)

    def read_into(self, there: Reader, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        last, self._last = self._last, None
        before = [one for one in (*self._marks, last) if one is not None and one.at <= offset]
        nearest = max(before, key=lambda one: one.at, default=None)
        stream = nearest.copy(there) if nearest is not None else _Stream(self._source, there)
        for at in range(stream.at + self._step, offset, self._step):
            stream.read(at - 1, 1)
            self._mark(stream)
        stream.read_into(target, offset)
        self._mark(stream)
        # Not of one that has failed.
        self._last = stream if stream.at < self._source.nbytes else None

    def _mark(self, stream: _Stream) -> None:
        """Keep this place, if it is far behind those that are kept; of too many, each second one is let go."""
        last = self._marks[-1].at if self._marks else 0
        if not last + self._step <= stream.at < self._source.nbytes:
            return
        self._marks.append(stream.copy())
        if len(self._marks) > _MAX_MARKS:
            self._marks, self._step = self._marks[1::2], self._step * 2


class _MarkedReader(Reader):
    """One that is open."""

    def __init__(self, marked: Marked, there: Reader) -> None:
        self._marked, self._there = marked, there

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        self._marked.read_into(self._there, target, offset)

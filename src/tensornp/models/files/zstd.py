"""Bytes that are packed by Zstandard, unpacked as they are read and never all at once."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from tensornp.errors import CheckpointError, MissingLibraryError, TensornpError
from tensornp.models.files.byte_range import ByteSource, Readable, check_inside
from tensornp.models.files.source_file import Array

_LIBRARIES = ("zstandard", "compression.zstd", "pyzstd")
"""Any of which will do; the second comes with Python 3.14."""
_STEP_NBYTES = 2**18
_KEPT_NBYTES = 2**16
"""Bytes of both ends that are kept: a zip has its directory and its pickle there."""


def zstd_library() -> str:
    """Return the library that is here, by its name; empty where none is."""
    for name in _LIBRARIES:
        try:
            if importlib.util.find_spec(name) is not None:
                return name
        except ImportError:
            continue
    return ""


def unpacking(packed: ByteSource) -> Any:
    """Return a stream of the unpacked bytes; MissingLibraryError without a library."""
    name = zstd_library()
    if not name:
        raise MissingLibraryError(f"{packed.said} is packed by Zstandard; install zstandard to read it")
    library, stream = importlib.import_module(name), Readable(packed, packed.nbytes)
    if name == "zstandard":
        return library.ZstdDecompressor().stream_reader(stream)
    return library.ZstdFile(stream)


class Unpacked:
    """Bytes that are unpacked forwards; what lies before the last that were read is unpacked anew."""

    def __init__(self, packed: ByteSource, limit: int) -> None:
        self.said, self._packed, self._limit = packed.said, packed, limit
        self._nbytes = -1
        self._head = self._tail = b""
        self._stream: Any = None
        self._at = 0

    @property
    def nbytes(self) -> int:
        """How many there are, for which all are unpacked once; CheckpointError if more than the limit."""
        if self._nbytes < 0:
            self._begin_anew()
            while some := self._next(_STEP_NBYTES):
                self._head += some[: _KEPT_NBYTES - len(self._head)]
                self._tail = (self._tail + some)[-_KEPT_NBYTES:]
                if self._at > self._limit:
                    raise CheckpointError(f"{self.said} unpacks to more than {self._limit:,} bytes")
            self._nbytes = self._at
        return self._nbytes

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on; CheckpointError past the end."""
        view = memoryview(target.data).cast("B")
        if offset + len(view) <= len(self._head):
            view[:] = self._head[offset : offset + len(view)]
            return
        if self._nbytes >= 0:
            check_inside(self, offset, len(view))
            from_end = offset - self._nbytes + len(self._tail)
            if from_end >= 0:
                view[:] = self._tail[from_end : from_end + len(view)]
                return
        if self._stream is None or offset < self._at:
            self._begin_anew()
        while self._at < offset:
            self._some(min(offset - self._at, _STEP_NBYTES))
        done = 0
        while done < len(view):
            some = self._some(min(len(view) - done, _STEP_NBYTES))
            view[done : done + len(some)] = some
            done += len(some)

    def _begin_anew(self) -> None:
        self._stream, self._at = unpacking(self._packed), 0

    def _some(self, nbytes: int) -> bytes:
        some = self._next(nbytes)
        if not some:
            raise CheckpointError(f"{self.said} unpacks to {self._at:,} bytes, and more are needed")
        return some

    def _next(self, nbytes: int) -> bytes:
        try:
            some: bytes = self._stream.read(nbytes)
        except TensornpError:
            raise
        except Exception:
            # Each library has its own.
            raise CheckpointError(f"{self.said} is not packed soundly by Zstandard") from None
        self._at += len(some)
        return some

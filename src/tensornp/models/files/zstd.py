"""Unpack bytes that are packed by Zstandard."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from tensornp.errors import CheckpointError, MissingLibraryError, TensornpError
from tensornp.models.files.byte_range import ByteSource, Readable, check_inside
from tensornp.models.files.source_file import Array

_LIBRARIES = ("zstandard", "compression.zstd", "pyzstd")
"""Any of which will do; the second comes with Python 3.14."""


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
    """The unpacked bytes, all in memory once they are asked for."""

    def __init__(self, packed: ByteSource, limit: int) -> None:
        self.said, self._packed, self._limit = packed.said, packed, limit
        self._data: bytes | None = None

    @property
    def nbytes(self) -> int:
        """How many there are; CheckpointError if more than the limit."""
        return len(self._unpacked())

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on; CheckpointError past the end."""
        view = memoryview(target.data).cast("B")
        check_inside(self, offset, len(view))
        view[:] = self._unpacked()[offset : offset + len(view)]

    def _unpacked(self) -> bytes:
        if self._data is None:
            stream = unpacking(self._packed)
            data = bytearray()
            try:
                while len(data) <= self._limit and (some := stream.read(self._limit + 1 - len(data))):
                    data += some
            except TensornpError:
                raise
            except Exception:
                # Each library has its own.
                raise CheckpointError(f"{self.said} is not packed soundly by Zstandard") from None
            if len(data) > self._limit:
                raise CheckpointError(f"{self.said} unpacks to more than {self._limit:,} bytes")
            self._data = bytes(data)
        return self._data

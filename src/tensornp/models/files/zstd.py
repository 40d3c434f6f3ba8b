"""Unpack bytes that are packed by Zstandard."""

from __future__ import annotations

import importlib
import importlib.util

from tensornp.errors import CheckpointError, MissingLibraryError
from tensornp.models.files.byte_range import ByteSource, check_inside, read_bytes
from tensornp.models.files.source_file import Array

_LIBRARIES = ("zstandard", "compression.zstd")
"""Either of them will do; the second comes with Python 3.14."""


def zstd_library() -> str:
    """Return the library that is here, by its name; empty where none is."""
    for name in _LIBRARIES:
        try:
            if importlib.util.find_spec(name) is not None:
                return name
        except ImportError:
            continue
    return ""


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
            self._data = _unpack(read_bytes(self._packed, 0, self._packed.nbytes), self.said, self._limit)
        return self._data


def _unpack(packed: bytes, said: str, limit: int) -> bytes:
    name = zstd_library()
    if not name:
        raise MissingLibraryError(f"{said} is packed by Zstandard; install zstandard to read it")
    unpacker = importlib.import_module(name).ZstdDecompressor()
    try:
        if name == "zstandard":
            data: bytes = unpacker.stream_reader(packed).read(limit + 1)
        else:
            data = unpacker.decompress(packed, limit + 1)
    except Exception:
        # Each library has its own errors.
        raise CheckpointError(f"{said} is not packed soundly by Zstandard") from None
    if len(data) > limit:
        raise CheckpointError(f"{said} unpacks to more than {limit:,} bytes")
    return data

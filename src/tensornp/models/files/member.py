"""A member of a zip that lies in it as it is: read by positions as the file is, and checked where all of it is read."""

from __future__ import annotations

import zlib
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tensornp.errors import CheckpointError
from tensornp.models.files.source_file import Extent, ListedFile, Reader

_PIECE_NBYTES = 2**20


@dataclass(frozen=True, slots=True)
class StoredMember:
    """So many bytes of `file` from `offset` on, of which the directory tells the checksum; positions are the file's."""

    file: ListedFile
    offset: int
    nbytes: int
    checksum: int

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.file.path

    @property
    def is_stream(self) -> bool:
        """Return False: each byte is read by itself."""
        return False

    def extent(self, offset: int, nbytes: int) -> Extent:
        """Return so many bytes of the file from `offset` on."""
        return self.file.extent(offset, nbytes)

    def opened(self) -> AbstractContextManager[Reader]:
        """Open the file for some reads."""
        return self.file.opened()

    def check(self) -> None:
        """Raise CheckpointError unless all its bytes give their checksum: a fifth of a second for 1 GB."""
        found = 0
        with self.opened() as there:
            for at in range(0, self.nbytes, _PIECE_NBYTES):
                piece = there.read(self.offset + at, min(_PIECE_NBYTES, self.nbytes - at))
                found = zlib.crc32(piece.data, found)
        if found != self.checksum:
            said = f"stored bytes, from byte {self.offset:,} on, that do not give their checksum"
            raise CheckpointError(f"{self.path!r} has {said}")

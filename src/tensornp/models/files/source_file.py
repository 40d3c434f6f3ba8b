"""Read regular files by position, without mapping them.

A mapped file that shrinks crashes the process. Each read checks that the file is the one that was listed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import BufferedReader, FileIO
from typing import Any, NamedTuple

import numpy as np

from tensornp.errors import ChangedFileError, CheckpointError

Array = np.ndarray[Any, Any]
_PAGE_NBYTES = 4096
"""Bytes of a disk that small neighbouring reads share."""


class AbsentError(CheckpointError):
    """There is nothing at a path or an address, or no permission to see it."""


class Extent(NamedTuple):
    """Bytes of a file."""

    path: str
    offset: int
    nbytes: int


class Reader:
    """An open file that is read at positions, by a function that returns bytes of it."""

    def __init__(self, bring: Callable[[int, int], bytes]) -> None:
        self._bring = bring

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        target[:] = np.frombuffer(self._bring(offset, target.nbytes), np.uint8)

    def read(self, offset: int, nbytes: int) -> bytes:
        return self._bring(offset, nbytes)


class ListedFile:
    """A file as it was when it was listed, wherever it lies; it holds nothing open.

    A file `is_packed` if it is inflated as a whole when it is opened.
    """

    __slots__ = ()
    path: str
    is_packed: Any = False
    nbytes: Any

    def extent(self, offset: int, nbytes: int) -> Extent:
        return Extent(self.path, offset, nbytes)

    def read(self, offset: int, nbytes: int) -> bytes:
        with self.scanned() as there:
            return there.read(offset, nbytes)

    def opened(self) -> AbstractContextManager[Reader]:
        """Open it for some reads; ChangedFileError if it is not the listed file."""
        raise NotImplementedError

    def scanned(self) -> AbstractContextManager[Reader]:
        """Open it for many small reads of neighbouring parts, such as those of a header."""
        return self.opened()


@dataclass(frozen=True, slots=True)
class SourceFile(ListedFile):
    """A regular file of this machine, or of a share; it can be sent to another process."""

    path: str
    mark: tuple[int, int, int]
    """Its inode, size and time of the last change."""

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> SourceFile:
        """Return the file at `path`, symbolic links followed; CheckpointError for what is not a readable file."""
        name = os.fspath(path)
        try:
            status = os.stat(name)
            if stat.S_ISREG(status.st_mode):
                _open(name).close()
        except (OSError, ValueError) as error:
            kind = AbsentError if isinstance(error, FileNotFoundError) else CheckpointError
            raise kind(f"{name!r} cannot be opened: {reason_of(error)}") from None
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointError(f"{name!r} is not a regular file")
        return cls(name, _mark_of(status))

    @property
    def nbytes(self) -> int:
        return self.mark[1]

    @contextmanager
    def opened(self) -> Iterator[OpenFile]:
        """Open it for some reads; ChangedFileError if it has changed before or after them."""
        try:
            file = _open(self.path)
        except OSError as error:
            raise ChangedFileError(f"{self.path!r} cannot be opened any more: {reason_of(error)}") from None
        with file:
            there = OpenFile(self, file)
            there.check()
            yield there
            there.check()


class OpenFile(Reader):
    """An open file of this machine, which one thread reads."""

    def __init__(self, source: SourceFile, file: BufferedReader) -> None:
        self._source, self._file = source, file

    def check(self) -> None:
        now, listed = _mark_of(os.fstat(self._file.fileno())), self._source.mark
        if now != listed:
            said = f"shrank from {listed[1]:,} to {now[1]:,} bytes" if now[1] < listed[1] else "changed"
            raise ChangedFileError(f"{self._source.path!r} {said} since it was listed; open it again")

    def read_into(self, target: Any, offset: int) -> None:
        try:
            self._file.seek(offset)
            count = self._file.readinto(target)
        except OSError as error:
            said = f"{self._source.path!r} cannot be read any more: {reason_of(error)}"
            raise ChangedFileError(said) from None
        if count < target.nbytes:
            self.check()
            raise CheckpointError(f"{self._source.path!r} ends before byte {offset + target.nbytes:,}")

    def read(self, offset: int, nbytes: int) -> bytes:
        made = bytearray(nbytes)
        self.read_into(memoryview(made), offset)
        return bytes(made)


def _mark_of(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _open(path: str) -> BufferedReader:
    """Open a file; a pipe in its place does not block."""
    file = FileIO(path, opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))
    return BufferedReader(file, _PAGE_NBYTES)


def reason_of(error: Exception) -> str:
    """Return why a path cannot be used, in a few words."""
    return getattr(error, "strerror", None) or "its path has a character that no path has"


def overlapping(spans: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Yield the names whose bytes overlap those of an earlier name."""
    end = 0
    for name in sorted(spans, key=spans.__getitem__):
        offset, nbytes = spans[name]
        if nbytes and offset < end:
            yield name
        end = max(end, offset + nbytes)

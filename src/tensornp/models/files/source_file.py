"""A regular file that is read by positions, and never mapped: a mapped one that shrinks ends the process.

What was listed is what is read: each read compares the file with what it was, and refuses another one.
"""

from __future__ import annotations

import functools
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from threading import RLock
from typing import Any, NamedTuple, Protocol

import numpy as np

from tensornp.core.memory.digest import digest_of
from tensornp.errors import ChangedFileError, CheckpointError

Array = np.ndarray[Any, Any]
# A pipe that took the place of a file does not hang whoever opens it; Windows has neither flag.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


_TOLD_NBYTES = 4096
"""Bytes at either end of a file by which it is known on another machine."""


class FileMark(NamedTuple):
    """By what a file is known again."""

    device: int
    inode: int
    nbytes: int
    mtime_ns: int


class Reader(ABC):
    """What is open, and read by positions."""

    @abstractmethod
    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""

    def read(self, offset: int, nbytes: int) -> Array:
        """Return so many bytes from `offset` on, in new memory."""
        made = np.empty(nbytes, np.uint8)
        self.read_into(made, offset)
        return made


class Extent(NamedTuple):
    """Bytes of a file."""

    path: str
    offset: int
    nbytes: int


class Bytes(Protocol):
    """What can be opened to be read by positions: a file, or what is packed in one."""

    @property
    def path(self) -> str:
        """The path of the file."""

    @property
    def is_stream(self) -> bool:
        """Whether it is read upwards, and all before a byte is read for it."""

    def extent(self, offset: int, nbytes: int) -> Extent:
        """Return where so many bytes from `offset` on lie in the file; of a stream, where all of it lies."""

    def opened(self, *, is_whole: bool = False) -> AbstractContextManager[Reader]:
        """Open it for some reads, or to read all."""


class ListedFile(ABC):
    """A file as it was when it was listed, wherever it lies; it holds nothing open."""

    __slots__ = ()
    path: str

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How many bytes it has."""

    @property
    def is_stream(self) -> bool:
        """Return False: each byte is read by itself."""
        return False

    def extent(self, offset: int, nbytes: int) -> Extent:
        """Return so many bytes from `offset` on."""
        return Extent(self.path, offset, nbytes)

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return so many bytes from `offset` on."""
        with self.opened() as there:
            return there.read(offset, nbytes).tobytes()

    @abstractmethod
    def opened(self, *, is_whole: bool = False) -> AbstractContextManager[Reader]:
        """Open it for some reads, or to read all; ChangedFileError if it is another one than when it was listed."""

    def scanned(self) -> AbstractContextManager[None]:
        """Read small neighbouring parts of a remote file together until the context ends."""
        return nullcontext()


def _mark_of(status: os.stat_result) -> FileMark:
    return FileMark(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class SourceFile(ListedFile):
    """A regular file of this machine, or of a share; it can be sent to another process.

    Elsewhere, the same file of a share has another device number: it is known by its size, its time and a fingerprint.
    """

    path: str
    mark: FileMark

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.path, self.mark, _fingerprint_of(self))

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> SourceFile:
        """Return the file at `path`, symbolic links followed.

        CheckpointError for a pipe, a device, a folder, and what cannot be opened.
        """
        name = os.fspath(path)
        try:
            status = os.stat(name)
            if stat.S_ISREG(status.st_mode):
                # By one call, after which Ctrl-C may come.
                list(map(os.close, map(os.open, [name], [_FLAGS])))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{name!r} cannot be opened: {reason_of(error)}") from None
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointError(f"{name!r} is not a regular file")
        return cls(name, _mark_of(status))

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.mark.nbytes

    @contextmanager
    def opened(self, *, is_whole: bool = False) -> Iterator[OpenFile]:
        """Open it for some reads; before and after them it is compared with what it was.

        Raises
        ------
        ChangedFileError
            If it has shrunk, was written to or replaced, or is gone.
        """
        descriptors: list[int] = []
        closing = map(os.close, descriptors)
        try:
            try:
                # Noted by the call that opens it, after which Ctrl-C may come.
                descriptors.extend(map(os.open, [self.path], [_FLAGS]))
            except OSError as error:
                raise ChangedFileError(f"{self.path!r} cannot be opened any more: {reason_of(error)}") from None
            there = OpenFile(self, descriptors[0])
            there.check()
            yield there
            there.check()
        finally:
            # What was read is right, whatever becomes of the file now. `suppress` would begin before the call.
            try:  # noqa: SIM105
                list(closing)
            except OSError:
                pass


@functools.lru_cache(maxsize=256)
def _fingerprint_of(file: SourceFile) -> bytes:
    """Return what tells the beginning and the end of a file, where headers are; nothing where it is another one."""
    try:
        with file.opened() as there:
            size = min(file.nbytes, _TOLD_NBYTES)
            told = there.read(0, size).tobytes() + there.read(file.nbytes - size, size).tobytes()
        return digest_of(told)
    except (OSError, CheckpointError):
        return b""


def _received(path: str, mark: FileMark, fingerprint: bytes) -> SourceFile:
    """Return a file that another process has listed, as it is known here; as it was there if it is another one here."""
    sent = SourceFile(path, mark)
    try:
        own = SourceFile.at(path)
    except CheckpointError:
        return sent
    is_other_place = own.mark.device != mark.device and own.mark[2:] == mark[2:]
    return own if is_other_place and fingerprint and _fingerprint_of(own) == fingerprint else sent


class OpenFile(Reader):
    """An open file; several threads may read it."""

    def __init__(self, source: SourceFile, descriptor: int) -> None:
        self._source, self._descriptor = source, descriptor
        self._lock = RLock()

    def check(self) -> None:
        """Raise ChangedFileError unless it is what was listed."""
        try:
            now, listed = _mark_of(os.fstat(self._descriptor)), self._source.mark
        except OSError as error:
            raise self._gone(error) from None
        if now == listed:
            return
        if now[:2] != listed[:2]:
            said = "was replaced"
        elif now.nbytes < listed.nbytes:
            said = f"shrank from {listed.nbytes:,} to {now.nbytes:,} bytes"
        else:
            said = "was written to"
        raise ChangedFileError(f"{self._source.path!r} {said} since it was listed; open it again")

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        view, done = memoryview(target.data), 0
        try:
            while done < len(view):
                count = self._read_some(view[done:], offset + done)
                if not count:
                    self.check()
                    raise CheckpointError(f"{self._source.path!r} ends before byte {offset + len(view):,}")
                done += count
        except OSError as error:
            if isinstance(error, ChangedFileError):
                raise
            raise self._gone(error) from None

    def _gone(self, error: OSError) -> ChangedFileError:
        """Return what is said of a file that was open, and is there no more, as on a share that vanishes."""
        return ChangedFileError(f"{self._source.path!r} cannot be read any more: {reason_of(error)}")

    def give_back(self, offset: int, nbytes: int) -> None:
        """Let the system drop these bytes from its cache, where it can be told so."""
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):
                os.posix_fadvise(self._descriptor, offset, nbytes, os.POSIX_FADV_DONTNEED)

    def _read_some(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [view], offset)
        # Windows has no read by position.
        with self._lock:
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            data = os.read(self._descriptor, len(view))
        view[: len(data)] = data
        return len(data)


def reason_of(error: Exception) -> str:
    """Return why a path cannot be used, in a few words."""
    return getattr(error, "strerror", None) or "its path has a character that no path has"

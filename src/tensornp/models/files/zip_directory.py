"""Find the members of a zip file, and read parts of files."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensornp.errors import CheckpointError, TensornpError, TooLargeError
from tensornp.models.files.source_file import Extent, ListedFile, Reader, overlapping

ZIP_MAGIC = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<4s22x2H")


class Record(NamedTuple):
    """The bytes of a member, and why they are not read; only a compressed one has `packed_nbytes`."""

    offset: int
    nbytes: int
    problem: str = ""
    packed_nbytes: int | None = None


class ByteRange(io.RawIOBase):
    """Bytes of a file from `first` on, also as a file object; `said` names them in a sentence."""

    def __init__(self, there: Reader, first: int, nbytes: int, said: str) -> None:
        self._there, self._first, self._at = there, first, 0
        self.nbytes, self.said = nbytes, said

    def part(self, offset: int, nbytes: int) -> bytes:
        """Return `nbytes` bytes at `offset`; CheckpointError past the end."""
        if nbytes and not 0 <= offset <= self.nbytes - nbytes:
            raise CheckpointError(f"{self.said} ends before byte {offset + nbytes:,}")
        return self._there.read(self._first + offset, nbytes)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.nbytes}[whence]
        if base + offset < 0:
            raise OSError("it begins later")
        self._at = base + offset
        return self._at

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        data = self.part(self._at, min(len(target), max(self.nbytes - self._at, 0)))
        target[: len(data)] = data
        self._at += len(data)
        return len(data)


@contextmanager
def zip_errors(said: str) -> Iterator[None]:
    """Convert errors of `zipfile` for damaged files to one sentence."""
    try:
        yield
    except (TensornpError, MemoryError):
        raise
    except Exception as error:
        # For damaged bytes, `zipfile` raises errors of eight classes.
        if isinstance(error.__context__, TensornpError):
            # The error of a changed file is an OSError as well.
            raise error.__context__ from None
        raise CheckpointError(said) from None


def records_of(source: ByteRange) -> dict[str, Record]:
    """Return the members of a zip; CheckpointError if its directory is damaged."""
    why = "the list of its members, at its end, is damaged or cut off"
    with zip_errors(f"{source.said} is not a valid zip file; {why}"), zipfile.ZipFile(source) as archive:
        members = archive.infolist()
    records: dict[str, Record] = {}
    for one in members:
        records[one.filename] = _record(source, one, is_again=one.filename in records)
    spans = {name: (one.offset, one.packed_nbytes or one.nbytes) for name, one in records.items() if not one.problem}
    for name in overlapping(spans):
        records[name] = records[name]._replace(problem="overlaps another one")
    return records


def _record(source: ByteRange, one: zipfile.ZipInfo, is_again: bool) -> Record:
    at, nbytes, packed_nbytes = one.header_offset, one.file_size, one.compress_size
    if one.flag_bits & 1:
        return Record(0, nbytes, "is encrypted")
    if is_again:
        return Record(0, nbytes, "is there more than once")
    if 0 <= at <= source.nbytes - _LOCAL_HEADER.size:
        signature, name_nbytes, extra_nbytes = _LOCAL_HEADER.unpack(source.part(at, _LOCAL_HEADER.size))
        first = at + _LOCAL_HEADER.size + name_nbytes + extra_nbytes
        if signature == ZIP_MAGIC and first + packed_nbytes <= source.nbytes:
            if one.compress_type != zipfile.ZIP_STORED:
                return Record(first, nbytes, "", packed_nbytes)
            return Record(first, nbytes, "has two sizes" if nbytes != packed_nbytes else "")
    return Record(0, nbytes, "lies outside of the file")


@dataclass(frozen=True, slots=True)
class PackedMember(ListedFile):
    """A compressed member of a zip, which is inflated as a whole when it is opened."""

    path: str
    archive: ListedFile
    name: str
    record: Record
    is_packed = True

    @property
    def nbytes(self) -> int:
        return self.record.nbytes

    def extent(self, offset: int, nbytes: int) -> Extent:
        return Extent(self.path, self.record.offset, self.record.packed_nbytes or 0)

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """Inflate it; CheckpointError if its bytes are damaged."""
        from tensornp.core.convert.budget import Budget

        Budget(None, "unpack the file first").take(self.nbytes)
        damaged = f"{self.path!r} has damaged compressed bytes, which end early or do not have their checksum"
        with self.archive.opened() as there, zip_errors(damaged):
            source = ByteRange(there, 0, self.archive.nbytes, repr(self.path))
            try:
                with zipfile.ZipFile(source) as archive:
                    data = archive.read(self.name)
            except MemoryError:
                said = f"there is no memory for the {self.nbytes:,} bytes of the compressed array"
                raise TooLargeError(f"{said}; unpack the file first", self.nbytes) from None
        if len(data) != self.nbytes:
            raise CheckpointError(damaged)
        yield Reader(lambda offset, nbytes: data[offset : offset + nbytes])

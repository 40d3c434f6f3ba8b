"""Find the members of a zip file, and read parts of files."""

from __future__ import annotations

import io
import struct
import zipfile
from collections import Counter
from typing import NamedTuple

from tensornp.errors import CheckpointError, TensornpError
from tensornp.models.files.source_file import Reader, overlapping

ZIP_MAGIC = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_MAX_RATIO = 1032
"""How many bytes deflate makes of one, at most."""


class Record(NamedTuple):
    """The bytes of a member, and why they are not read; only a deflated one has `packed_nbytes`."""

    offset: int
    nbytes: int
    problem: str = ""
    packed_nbytes: int | None = None
    checksum: int = 0


class ByteRange(io.RawIOBase):
    """Bytes of a file from `first` on, also as a file object; `said` names them in a sentence."""

    def __init__(self, there: Reader, first: int, nbytes: int, said: str) -> None:
        self._there, self._first, self._at = there, first, 0
        self.nbytes, self.said = nbytes, said

    def part(self, offset: int, nbytes: int) -> bytes:
        """Return `nbytes` bytes at `offset`; CheckpointError past the end."""
        if not 0 <= offset <= self.nbytes - nbytes:
            raise CheckpointError(f"{self.said} ends before byte {offset + nbytes:,}")
        return self._there.read(self._first + offset, nbytes)

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.nbytes}[whence]
        if base + offset < 0:
            raise OSError("it begins later")
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(self.nbytes - self._at, 0)
        data = self.part(self._at, left if size is None or size < 0 else min(size, left)) if left else b""
        self._at += len(data)
        return data


def records_of(source: ByteRange) -> dict[str, Record]:
    """Return the members of a zip; CheckpointError if its directory is damaged."""
    try:
        with zipfile.ZipFile(source) as archive:
            members = archive.infolist()
    except TensornpError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error) as error:
        if isinstance(error.__context__, TensornpError):
            # The error of a changed file is an OSError as well.
            raise error.__context__ from None
        why = "the list of its members, at its end, is damaged or cut off"
        raise CheckpointError(f"{source.said} is not a valid zip file; {why}") from None
    times = Counter(one.filename for one in members)
    records: dict[str, Record] = {}
    for one in members:
        problem = "is there more than once" if times[one.filename] > 1 else _problem(one)
        records[one.filename] = Record(0, one.file_size, problem) if problem else _record(source, one)
    spans = {name: (one.offset, one.packed_nbytes or one.nbytes) for name, one in records.items() if not one.problem}
    for name in overlapping(spans):
        records[name] = records[name]._replace(problem="overlaps another one")
    return records


def _record(source: ByteRange, one: zipfile.ZipInfo) -> Record:
    """Return a member, which begins after a header of its own, whose length the directory does not tell."""
    if 0 <= one.header_offset <= source.nbytes - _LOCAL_HEADER.size:
        header = source.part(one.header_offset, _LOCAL_HEADER.size)
        signature, *_, name_nbytes, extra_nbytes = _LOCAL_HEADER.unpack(header)
        first = one.header_offset + _LOCAL_HEADER.size + name_nbytes + extra_nbytes
        if signature == ZIP_MAGIC and first + one.compress_size <= source.nbytes:
            packed = one.compress_size if one.compress_type == zipfile.ZIP_DEFLATED else None
            return Record(first, one.file_size, packed_nbytes=packed, checksum=one.CRC)
    return Record(0, one.file_size, "lies outside of the file")


def _problem(one: zipfile.ZipInfo) -> str:
    """Return why a member is not read, as its entry in the directory tells."""
    if one.flag_bits & 1:
        return "is encrypted"
    if one.compress_type == zipfile.ZIP_DEFLATED:
        is_bomb = one.file_size > _MAX_RATIO * one.compress_size
        return f"would become {one.file_size:,} bytes of {one.compress_size:,}, which cannot be" if is_bomb else ""
    if one.compress_type != zipfile.ZIP_STORED:
        return f"is compressed by method {one.compress_type}, which is not read"
    return "" if one.file_size == one.compress_size else "has two sizes"

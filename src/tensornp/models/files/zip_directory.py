"""Read parts of files, and find the members of a zip file."""

from __future__ import annotations

import os
import struct
import zipfile
from collections import Counter
from typing import NamedTuple

import numpy as np

from tensornp.errors import CheckpointError, TensornpError
from tensornp.models.files.source_file import Array, Reader, overlapping

ZIP_MAGIC = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
MAX_DIRECTORY_NBYTES = 2**25
"""Bytes of the list of members: some hundred thousands."""
_MAX_RATIO = 1032
"""How many bytes deflate makes of one, at most."""


class Record(NamedTuple):
    """The bytes of a member, and the reason why they are not read.

    A deflated one takes `packed_nbytes` in the file; of another, that is None.
    """

    offset: int
    nbytes: int
    problem: str = ""
    packed_nbytes: int | None = None
    checksum: int = 0


def records_of(source: ByteRange, max_nbytes: int = MAX_DIRECTORY_NBYTES) -> dict[str, Record]:
    """Return the members of a zip; CheckpointError if its directory is damaged.

    A member begins after its own header, whose length the directory does not tell.
    """
    try:
        with zipfile.ZipFile(Readable(source, max_nbytes)) as archive:
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
    records = {one.filename: _record(source, one, is_alone=times[one.filename] == 1) for one in members}
    spans = {name: (one.offset, _stored_nbytes(one)) for name, one in records.items() if not one.problem}
    for name in overlapping(spans):
        records[name] = records[name]._replace(problem="overlaps another one")
    return records


def _stored_nbytes(record: Record) -> int:
    return record.nbytes if record.packed_nbytes is None else record.packed_nbytes


def _record(source: ByteRange, one: zipfile.ZipInfo, *, is_alone: bool) -> Record:
    problem = _problem(one, is_alone=is_alone)
    is_outside = not 0 <= one.header_offset <= source.nbytes - _LOCAL_HEADER.size
    if problem or is_outside:
        return Record(0, one.file_size, problem or "lies outside of the file")
    signature, *_, name_nbytes, extra_nbytes = _LOCAL_HEADER.unpack(
        read_bytes(source, one.header_offset, _LOCAL_HEADER.size)
    )
    first = one.header_offset + _LOCAL_HEADER.size + name_nbytes + extra_nbytes
    if signature != ZIP_MAGIC or first + one.compress_size > source.nbytes:
        return Record(0, one.file_size, "lies outside of the file")
    packed = one.compress_size if one.compress_type == zipfile.ZIP_DEFLATED else None
    return Record(first, one.file_size, packed_nbytes=packed, checksum=one.CRC)


def _problem(one: zipfile.ZipInfo, *, is_alone: bool) -> str:
    """Return why a member is not read, as its entry in the directory tells."""
    if not is_alone:
        return "is there more than once"
    if one.flag_bits & 1:
        return "is encrypted"
    if one.compress_type == zipfile.ZIP_DEFLATED:
        is_bomb = one.file_size > _MAX_RATIO * one.compress_size
        return f"would become {one.file_size:,} bytes of {one.compress_size:,}, which cannot be" if is_bomb else ""
    if one.compress_type != zipfile.ZIP_STORED:
        return f"is compressed by method {one.compress_type}, which is not read"
    return "" if one.file_size == one.compress_size else "has two sizes"


class ByteRange:
    """So many bytes of a file from `first` on; `said` names them in a sentence."""

    def __init__(self, there: Reader, first: int, nbytes: int, said: str) -> None:
        self._there, self._first = there, first
        self.nbytes, self.said = nbytes, said

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on; CheckpointError past the end."""
        check_inside(self, offset, target.nbytes)
        self._there.read_into(target, self._first + offset)


def check_inside(source: ByteRange, offset: int, nbytes: int) -> None:
    """Raise CheckpointError unless so many bytes from `offset` on are there."""
    if not 0 <= offset <= source.nbytes - nbytes:
        raise CheckpointError(f"{source.said} ends before byte {offset + nbytes:,}")


def read_bytes(source: ByteRange, offset: int, nbytes: int) -> bytes:
    """Return `nbytes` bytes at `offset`; raise CheckpointError past the end."""
    check_inside(source, offset, nbytes)
    made = np.empty(nbytes, np.uint8)
    source.read_into(made, offset)
    return made.tobytes()


class Readable:
    """File object of a byte source for `zipfile`; reads at most `max_nbytes` at once."""

    def __init__(self, source: ByteRange, max_nbytes: int) -> None:
        self._source, self._at, self._max_nbytes = source, 0, max_nbytes

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
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

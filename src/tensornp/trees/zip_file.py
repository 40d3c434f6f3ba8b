"""Where the members of a zip file lie, as far as its directory and their own headers agree; none of them is read."""

from __future__ import annotations

import os
import struct
import zipfile
from collections import Counter
from typing import NamedTuple

from tensornp.errors import CheckpointError
from tensornp.trees.overlap import overlapping
from tensornp.trees.source_file import OpenFile, SourceFile

ZIP_MAGIC = b"PK\x03\x04"
EMPTY_ZIP_MAGIC = b"PK\x05\x06"
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_MAX_DIRECTORY_NBYTES = 2**25
"""Bytes of the list of members: some hundred thousands."""
_MAX_RATIO = 1032
"""How many bytes deflate makes of one, at most."""


class Record(NamedTuple):
    """Where the bytes of a member lie; `problem` says why they are not read.

    A deflated one takes `packed_nbytes` in the file; of another, that is None.
    """

    offset: int
    nbytes: int
    problem: str = ""
    packed_nbytes: int | None = None
    checksum: int = 0


def records_of(file: SourceFile) -> dict[str, Record]:
    """Return where each member of a zip file lies; CheckpointError if it is none that is sound.

    A member begins after its own header, whose length the directory does not tell.
    """
    with file.opened() as there:
        try:
            with zipfile.ZipFile(_Positioned(there, file.nbytes)) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
            raise CheckpointError(f"{file.path!r} is no sound zip file: {error}") from None
        times = Counter(one.filename for one in members)
        records = {one.filename: _record(file, there, one, is_alone=times[one.filename] == 1) for one in members}
    spans = {name: (one.offset, _stored_nbytes(one)) for name, one in records.items() if not one.problem}
    for name in overlapping(spans):
        records[name] = records[name]._replace(problem="overlaps another one")
    return records


def _stored_nbytes(record: Record) -> int:
    return record.nbytes if record.packed_nbytes is None else record.packed_nbytes


def _record(file: SourceFile, there: OpenFile, one: zipfile.ZipInfo, *, is_alone: bool) -> Record:
    problem = _problem(one, is_alone=is_alone)
    is_outside = not 0 <= one.header_offset <= file.nbytes - _LOCAL_HEADER.size
    if problem or is_outside:
        return Record(0, one.file_size, problem or "lies outside of the file")
    signature, *_, name_nbytes, extra_nbytes = _LOCAL_HEADER.unpack(
        there.read(one.header_offset, _LOCAL_HEADER.size).tobytes()
    )
    first = one.header_offset + _LOCAL_HEADER.size + name_nbytes + extra_nbytes
    if signature != ZIP_MAGIC or first + one.compress_size > file.nbytes:
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


class _Positioned:
    """The file as the library reads it, which opens no path of its own."""

    def __init__(self, there: OpenFile, nbytes: int) -> None:
        self._there, self._nbytes, self._at = there, nbytes, 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._nbytes}[whence]
        if at < 0:
            raise OSError("it would begin before the file")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def read(self, nbytes: int = -1) -> bytes:
        left = max(self._nbytes - self._at, 0)
        count = left if nbytes < 0 else min(nbytes, left)
        if count > _MAX_DIRECTORY_NBYTES:
            raise zipfile.BadZipFile(f"its directory has {count:,} bytes, and {_MAX_DIRECTORY_NBYTES:,} are read")
        data = self._there.read(self._at, count).tobytes()
        self._at += count
        return data

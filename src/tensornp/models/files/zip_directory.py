"""The members of a zip file, if its directory and their headers agree."""

from __future__ import annotations

import struct
import zipfile
from collections import Counter
from typing import NamedTuple

from tensornp.errors import CheckpointError, TensornpError
from tensornp.models.files.byte_range import ByteSource, Readable, read_bytes
from tensornp.models.files.source_file import overlapping

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


def records_of(source: ByteSource, max_nbytes: int = MAX_DIRECTORY_NBYTES) -> dict[str, Record]:
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
            # Of a file that has changed, which is an OSError as well.
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


def _record(source: ByteSource, one: zipfile.ZipInfo, *, is_alone: bool) -> Record:
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

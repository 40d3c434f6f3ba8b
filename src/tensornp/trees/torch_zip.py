"""The zip that `torch.save` writes: a pickle, and where the bytes of each storage lie."""

from __future__ import annotations

import struct
import zipfile
from collections import Counter
from typing import NamedTuple

from tensornp.errors import CheckpointError
from tensornp.trees.byte_range import Readable, Source, read_bytes
from tensornp.trees.unpickled import PickledTensor
from tensornp.trees.xray import MAX_NBYTES, XRay, xray

ZIP_MAGIC = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")


class Record(NamedTuple):
    """Where the bytes of a storage lie; `problem` says why they are not read."""

    offset: int
    nbytes: int
    problem: str = ""


class TorchZip(NamedTuple):
    """What the pickle would build, and the storages by their keys."""

    found: XRay
    storages: dict[str, Record]


def read_torch_zip(source: Source, max_nbytes: int = MAX_NBYTES) -> TorchZip:
    """Return what lies in a zip of `torch.save`, whose values are not read.

    `max_nbytes` is what its directory and its pickle may have each; CheckpointError if it is no such zip, or not sound.
    """
    try:
        with zipfile.ZipFile(Readable(source, max_nbytes)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{source.said} is no sound zip file: {error}") from None
    pickles = [one for one in members if one.filename.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise CheckpointError(f"{source.said} is a zip file with {len(pickles)} data.pkl, and none of torch.save")
    prefix = pickles[0].filename.removesuffix("data.pkl")
    records = _records(source, members)
    place = records[pickles[0].filename]
    if place.problem:
        raise CheckpointError(f"{source.said} cannot be looked through: its data.pkl {place.problem}")
    if place.nbytes > max_nbytes:
        raise CheckpointError(f"{source.said} cannot be looked through: its data.pkl has {place.nbytes:,} bytes")
    found = looked_through(source.said, read_bytes(source, place.offset, place.nbytes))
    order = records.get(f"{prefix}byteorder")
    if order is not None and not order.problem and read_bytes(source, order.offset, min(order.nbytes, 8)) == b"big":
        records = {name: one._replace(problem="has its bytes in big-endian order") for name, one in records.items()}
    return TorchZip(found, {name.removeprefix(f"{prefix}data/"): one for name, one in records.items()})


def looked_through(said: str, data: bytes) -> XRay:
    """Return what a pickle would build; an error names the file."""
    try:
        return xray(data)
    except CheckpointError as error:
        raise CheckpointError(f"{said} cannot be looked through: {error}") from None


def why_unread(tensor: PickledTensor, record: Record | None) -> str:
    """Return why a tensor is not read whose storage is `record`; empty where all of its bytes are there."""
    if tensor.problem:
        return tensor.problem
    if record is None:
        return "its storage is not in the file"
    if record.problem:
        return f"its storage {record.problem}"
    if record.nbytes < tensor.storage_nbytes:
        return f"its storage has {record.nbytes:,} bytes, and {tensor.storage_nbytes:,} are declared"
    return ""


def _records(source: Source, members: list[zipfile.ZipInfo]) -> dict[str, Record]:
    """Return where each member lies: it begins after its own header, whose length the directory does not tell."""
    times = Counter(one.filename for one in members)
    records: dict[str, Record] = {}
    for one in members:
        records[one.filename] = _record(source, one, is_alone=times[one.filename] == 1)
    end = 0
    for name, record in sorted(records.items(), key=lambda pair: pair[1].offset):
        if not record.problem and record.nbytes:
            if record.offset < end:
                records[name] = record._replace(problem="overlaps another one")
            end = max(end, record.offset + record.nbytes)
    return records


def _record(source: Source, one: zipfile.ZipInfo, *, is_alone: bool) -> Record:
    if not is_alone:
        return Record(0, 0, "is there more than once")
    if one.compress_type != zipfile.ZIP_STORED or one.file_size != one.compress_size:
        return Record(0, one.file_size, "is compressed")
    if one.flag_bits & 1:
        return Record(0, one.file_size, "is encrypted")
    if not 0 <= one.header_offset <= source.nbytes - _LOCAL_HEADER.size:
        return Record(0, one.file_size, "lies outside of the file")
    signature, *_, name_nbytes, extra_nbytes = _LOCAL_HEADER.unpack(
        read_bytes(source, one.header_offset, _LOCAL_HEADER.size)
    )
    first = one.header_offset + _LOCAL_HEADER.size + name_nbytes + extra_nbytes
    if signature != ZIP_MAGIC or first + one.file_size > source.nbytes:
        return Record(0, one.file_size, "lies outside of the file")
    return Record(first, one.file_size)

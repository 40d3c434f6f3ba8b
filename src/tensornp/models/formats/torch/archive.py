"""The zip that `torch.save` writes: a pickle, and where the bytes of each storage lie."""

from __future__ import annotations

from typing import NamedTuple

from tensornp.errors import CheckpointError
from tensornp.models.files.byte_range import ByteSource, read_bytes
from tensornp.models.files.zip_directory import MAX_DIRECTORY_NBYTES, Record, records_of
from tensornp.models.pickles.look_through import MAX_NBYTES, xray
from tensornp.models.pickles.records import XRay
from tensornp.models.pickles.tensors import PickledTensor

_MAX_ORDER_NBYTES = 8


class TorchZip(NamedTuple):
    """What the pickle would build, the storages by their keys, and if their bytes lie in the other order.

    `num_constants` counts the tensors that TorchScript keeps beside the pickle, as `torch.jit.freeze` makes of weights.
    """

    found: XRay
    storages: dict[str, Record]
    is_swapped: bool
    num_constants: int


def read_torch_zip(source: ByteSource, max_nbytes: int = MAX_NBYTES) -> TorchZip:
    """Return what lies in a zip of `torch.save`, whose values are not read.

    `max_nbytes` is what its directory and its pickle may have each; CheckpointError if it is no such zip, or not sound.
    """
    return of_torch(source, records_of(source, min(max_nbytes, MAX_DIRECTORY_NBYTES)), max_nbytes)


def of_torch(source: ByteSource, members: dict[str, Record], max_nbytes: int = MAX_NBYTES) -> TorchZip:
    """Return what a zip of these members holds, as `read_torch_zip`."""
    records = {name: _uncompressed(one) for name, one in members.items()}
    pickles = [name for name in records if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise CheckpointError(f"{source.said} is a zip file with {len(pickles)} data.pkl, and none of torch.save")
    prefix, place = pickles[0].removesuffix("data.pkl"), records[pickles[0]]
    if place.problem:
        raise CheckpointError(f"{source.said} cannot be looked through: its data.pkl {place.problem}")
    if place.nbytes > max_nbytes:
        raise CheckpointError(f"{source.said} cannot be looked through: its data.pkl has {place.nbytes:,} bytes")
    found = looked_through(source.said, read_bytes(source, place.offset, place.nbytes))
    is_swapped, why = _order_of(source, records.get(f"{prefix}byteorder"))
    if why:
        records = {name: one._replace(problem=one.problem or why) for name, one in records.items()}
    there = f"{prefix}data/"
    storages = {name[len(there) :]: one for name, one in records.items() if name.startswith(there)}
    constants = (name.removeprefix(f"{prefix}constants/") for name in records)
    return TorchZip(found, storages, is_swapped, sum(name.isdecimal() for name in constants))


def looked_through(said: str, data: bytes, max_made: int | None = None) -> XRay:
    """Return what a pickle would build, as `xray`; an error names the file."""
    try:
        return xray(data, max_made)
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


def _order_of(source: ByteSource, order: Record | None) -> tuple[bool, str]:
    """Return whether the bytes of elements are in the other order, and why none can be read where it is not told."""
    if order is None:
        # Before torch 2.1 nobody told it, and all wrote it little-endian.
        return False, ""
    if order.problem:
        return False, f"may have its bytes in any order, since what tells it {order.problem}"
    told = read_bytes(source, order.offset, min(order.nbytes, _MAX_ORDER_NBYTES))
    return told == b"big", "" if told in (b"big", b"little") else "has its bytes in an order that is not known"


def _uncompressed(record: Record) -> Record:
    """Return a record that has a problem where a view of a part of it could not be read by its offset."""
    is_compressed = record.packed_nbytes is not None and not record.problem
    return record._replace(problem="is compressed") if is_compressed else record

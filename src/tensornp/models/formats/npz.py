"""Archives of `numpy.savez`: stored arrays are read where they lie, compressed ones are inflated when asked for."""

from __future__ import annotations

from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry, nothing
from tensornp.models.files.deflate import Inflated
from tensornp.models.files.source_file import OpenFile, SourceFile
from tensornp.models.files.zip_directory import Record
from tensornp.models.formats.contents import Contents
from tensornp.models.formats.npy import SUFFIX, npy_weight, read_npy_header
from tensornp.models.names.quoted import shown_name


def has_arrays(members: dict[str, Record]) -> bool:
    """Return whether a zip of these members is one of `numpy.savez`, and none of `torch.save`; it may be empty."""
    is_of_torch = any(name.lower().rpartition("/")[2] == "data.pkl" for name in members)
    return not is_of_torch and (not members or any(name.endswith(SUFFIX) for name in members))


def read_npz(file: SourceFile, members: dict[str, Record]) -> Contents:
    """Return what a zip of these members holds: an array that is not sound has a problem, and hides no other."""
    with file.opened() as there:
        entries = [_entry(file, there, name, record) for name, record in members.items() if name.endswith(SUFFIX)]
    others = [name for name in members if not name.endswith(SUFFIX)]
    return Contents(entries, {}, [f"its member {shown_name(name)} is no array" for name in others])


def _entry(file: SourceFile, there: OpenFile, member: str, record: Record) -> WeightEntry:
    name = member.removesuffix(SUFFIX)
    code = f"numpy.load({file.path!r})[{name!r}]"
    if record.problem:
        return nothing(name, "array", code, f"its member {record.problem}", file.path)
    try:
        if record.packed_nbytes is None:
            return npy_weight(read_npy_header(there, record.offset, record.nbytes), name, code, file)
        packed = Inflated(file, record.offset, record.packed_nbytes, record.nbytes, record.checksum)
        with packed.opened() as stream:
            header = read_npy_header(stream, 0, packed.nbytes)
    except CheckpointError as error:
        return nothing(name, "array", code, str(error), file.path)
    ratio = record.nbytes / max(record.packed_nbytes, 1)
    return npy_weight(header, name, code, packed, f"compressed {ratio:.3g} times")

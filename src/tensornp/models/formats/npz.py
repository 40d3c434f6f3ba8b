"""Archives of `numpy.savez`: stored arrays are read where they lie, compressed ones are inflated when asked for.

What is inflated to its end is compared with its checksum. What is stored is so where `to_numpy` gives all values, as
NumPy does; a window is not, nor are statistics and comparisons, which would take nearly twice as long.
"""

from __future__ import annotations

from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry, nothing
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.files.deflate import Inflated
from tensornp.models.files.source_file import ListedFile, Reader
from tensornp.models.files.zip_directory import Record
from tensornp.models.formats.contents import Contents
from tensornp.models.formats.npy import NO_NPY, SUFFIX, npy_weight, read_npy_header
from tensornp.models.names.quoted import shown_name


def has_arrays(members: dict[str, Record]) -> bool:
    """Return whether a zip of these members is one of `numpy.savez`, and none of `torch.save`; it may be empty."""
    is_of_torch = any(name.lower().rpartition("/")[2] == "data.pkl" for name in members)
    return not is_of_torch and (not members or any(name.endswith(SUFFIX) for name in members))


def read_npz(file: ListedFile, members: dict[str, Record]) -> Contents:
    """Return what a zip of these members holds: an array that is not sound has a problem, and hides no other."""
    entries: list[WeightEntry] = []
    problems: list[str] = []
    with file.opened() as there:
        for member, record in members.items():
            stem = member.removesuffix(SUFFIX)
            # NumPy takes a member of just that name first.
            entry = _entry(file, there, stem if stem not in members else member, record)
            # Without the ending too, it makes an array of what begins as one.
            if member.endswith(SUFFIX) or not (record.problem or entry.problem == NO_NPY):
                entries.append(entry)
            else:
                problems.append(NotListed(f"its member {shown_name(member)} {record.problem or 'is no array'}"))
    return Contents(entries, {}, problems)


def _entry(file: ListedFile, there: Reader, name: str, record: Record) -> WeightEntry:
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

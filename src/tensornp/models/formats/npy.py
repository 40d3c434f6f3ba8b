"""NumPy's files: one array of `numpy.save`, or the zip of `numpy.savez`.

Stored arrays are read in place. Compressed ones are inflated as a whole for each read, and checked by their checksum.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from typing import Any

import numpy as np

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.strides import contiguous, unless_in_order
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import NotListed, WeightEntry, nothing
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.files.source_file import ListedFile
from tensornp.models.files.zip_directory import ByteRange, PackedMember, Record, records_of, zip_errors
from tensornp.models.formats.table import Contents
from tensornp.models.names.quoted import MAX_SHOWN, cut, shown_name

SUFFIX = ".npy"
_MAGIC = b"\x93NUMPY"
_MAX_HEADER_NBYTES = 10_012
"""NumPy's own limit, since longer literals have crashed Python, with what stands before the header."""
_KINDS = {
    "O": "Python objects in a pickle, which is not run", "S": "strings of bytes", "U": "strings", "M": "dates",
    "m": "times", "V": "structures, or bytes such as those of bfloat16 and float8; view them as what they are",
}  # fmt: skip


def read_npy(file: ListedFile) -> Contents:
    """Return the array in a file of `numpy.save`; CheckpointError if its header is malformed."""
    begins = file.read(0, min(file.nbytes, _MAX_HEADER_NBYTES))
    try:
        entry, end = _weight(begins, 0, file.nbytes, "array", f"numpy.load({file.path!r})", file)
    except CheckpointError as error:
        raise CheckpointError(f"{file.path!r} is not a valid {SUFFIX} file: {error}") from None
    said = f"{counted(file.nbytes - end, 'byte')} at its end can belong to no array that is listed"
    return Contents([entry], {}, [NotListed(said)] if end < file.nbytes else [])


def read_zip(file: ListedFile) -> Contents:
    """Return the weights in a zip of `numpy.savez` or `torch.save`."""
    with file.scanned() as there:
        source = ByteRange(there, 0, file.nbytes, repr(file.path))
        members = records_of(source)
        is_of_torch = any(name.lower().rpartition("/")[2] == "data.pkl" for name in members)
        if not is_of_torch and (not members or any(name.endswith(SUFFIX) for name in members)):
            archive = zipfile.ZipFile(source)
            entries = [_member(file, archive, name, members) for name in members if name.endswith(SUFFIX)]
            others = [name for name in members if not name.endswith(SUFFIX)]
            return Contents(entries, {}, [NotListed(f"its member {shown_name(name)} is no array") for name in others])
        from tensornp.models.formats.torch_save import contents_of_zip

        return contents_of_zip(file, source, members)


def _member(file: ListedFile, archive: zipfile.ZipFile, member: str, members: dict[str, Record]) -> WeightEntry:
    record, stem = members[member], member.removesuffix(SUFFIX)
    # NumPy takes a member of just that name first.
    name = stem if stem not in members else member
    code = f"numpy.load({file.path!r})[{name!r}]"
    try:
        if record.problem:
            raise CheckpointError(f"its member {record.problem}")
        with zip_errors("its member has damaged bytes"), archive.open(member) as stream:
            begins = stream.read(_MAX_HEADER_NBYTES)
        if record.packed_nbytes is None:
            return _weight(begins, record.offset, record.nbytes, name, code, file)[0]
        note = f"compressed {record.nbytes / max(record.packed_nbytes, 1):.3g} times"
        return _weight(begins, 0, record.nbytes, name, code, PackedMember(file.path, file, member, record), note)[0]
    except CheckpointError as error:
        return nothing(name, "array", code, str(error), file.path)


def _weight(
    begins: bytes, start: int, nbytes: int, name: str, code: str, file: ListedFile, note: str = ""
) -> tuple[WeightEntry, int]:
    """Return an array by its header, which NumPy parses, and its end; CheckpointError if malformed."""
    if not begins.startswith(_MAGIC):
        raise CheckpointError("it does not begin as NumPy's files do")
    stream = io.BytesIO(begins)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = np.lib.format.read_magic(stream)
            if version[0] > 3:
                raise ValueError(f"its version is {version[0]}")
            # Version 3 differs from version 2 in the names of fields alone.
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, is_fortran, dtype = read(stream)
            if min(shape, default=0) < 0:
                raise ValueError("a size is negative")
    except Exception as error:
        # NumPy, its parser of literals and its parser of dtypes raise many kinds.
        why = " ".join(str(error).partition("<")[0].split())[:MAX_SHOWN]
        raise CheckpointError(f"its header is malformed ({why or type(error).__name__})") from None
    shape = tuple(map(int, shape))
    dtype_name, problem = _dtype_of(dtype)
    left = nbytes - stream.tell()
    # Nothing tells the length of a pickle.
    needed = left if dtype.hasobject else math.prod(shape) * dtype.itemsize
    if needed > left:
        said = f"{cut(str(shape), MAX_SHOWN)} of {shown_name(dtype_name)} needs {needed:,} bytes"
        raise CheckpointError(f"its shape {said}, and {left:,} follow its header")
    first, is_swapped = start + stream.tell(), not problem and not dtype.isnative
    strides = unless_in_order(shape, contiguous(shape[::-1])[::-1]) if is_fortran and not problem else None
    source = FileSource(shape, dtype_name, file, first, strides, is_swapped)
    notes = [note, "other byte order" * is_swapped, "Fortran order" * (is_fortran and len(shape) > 1)]
    made = weight_in(
        source, name, "" if dtype.hasobject else code, kind="array", nbytes=needed,
        note=", ".join(filter(None, notes)), problem=problem,
    )  # fmt: skip
    return made, first + needed


def _dtype_of(dtype: np.dtype[Any]) -> tuple[str, str]:
    if dtype.name in KNOWN and stored_dtype(dtype.name).itemsize == dtype.itemsize:
        return dtype.name, ""
    name = "structured" if dtype.fields is not None else dtype.str if dtype.kind in "SUMmV" else dtype.name
    return name, f"its elements are {_KINDS.get(dtype.kind, f'of {dtype.name}, which not every machine has')}"

"""NumPy's files: one array of `numpy.save`, or the zip of `numpy.savez`.

Stored arrays are read in place. Compressed ones are inflated as a whole for each read, and checked by their checksum.
"""

from __future__ import annotations

import io
import math
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.strides import contiguous, unless_in_order
from tensornp.errors import CheckpointError, TooLargeError
from tensornp.models.entries.entry import NotListed, WeightEntry, nothing
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.entries.take import Array
from tensornp.models.files.source_file import Extent, ListedFile, Reader
from tensornp.models.files.zip_directory import ByteRange, Record, records_of
from tensornp.models.formats.contents import Contents
from tensornp.models.names.quoted import MAX_SHOWN, cut, shown_name

SUFFIX = ".npy"
_MAGIC = b"\x93NUMPY"
_NO_NPY = "it does not begin as NumPy's files do"
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
        members = records_of(ByteRange(there, 0, file.nbytes, repr(file.path)))
        is_of_torch = any(name.lower().rpartition("/")[2] == "data.pkl" for name in members)
        if not is_of_torch and (not members or any(name.endswith(SUFFIX) for name in members)):
            return _read_npz(file, there, members)
    from tensornp.models.formats.torch_save import read_zip

    return read_zip(file, members)


def _read_npz(file: ListedFile, there: Reader, members: dict[str, Record]) -> Contents:
    """Return the arrays in a zip; a malformed one has a problem, and hides no other."""
    entries: list[WeightEntry] = []
    problems: list[str] = []
    for member, record in members.items():
        stem = member.removesuffix(SUFFIX)
        # NumPy takes a member of just that name first.
        entry = _member(file, there, stem if stem not in members else member, record)
        # NumPy also makes an array of a member of any other name that begins as one.
        if member.endswith(SUFFIX) or not (record.problem or entry.problem == _NO_NPY):
            entries.append(entry)
        else:
            problems.append(NotListed(f"its member {shown_name(member)} {record.problem or 'is no array'}"))
    return Contents(entries, {}, problems)


def _member(file: ListedFile, there: Reader, name: str, record: Record) -> WeightEntry:
    code = f"numpy.load({file.path!r})[{name!r}]"
    if record.problem:
        return nothing(name, "array", code, f"its member {record.problem}", file.path)
    try:
        if record.packed_nbytes is None:
            begins = there.read(record.offset, min(record.nbytes, _MAX_HEADER_NBYTES))
            return _weight(begins, record.offset, record.nbytes, name, code, file)[0]
        packed, ratio = Deflated(file.path, file, record), record.nbytes / max(record.packed_nbytes, 1)
        note = f"compressed {ratio:.3g} times"
        return _weight(packed.beginning(there), 0, record.nbytes, name, code, packed, note)[0]
    except CheckpointError as error:
        return nothing(name, "array", code, str(error), file.path)


def _weight(
    begins: bytes, start: int, nbytes: int, name: str, code: str, file: ListedFile, note: str = ""
) -> tuple[WeightEntry, int]:
    """Return an array by its header, which NumPy parses, and its end; CheckpointError if malformed."""
    if not begins.startswith(_MAGIC):
        raise CheckpointError(_NO_NPY)
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
            num = math.prod(size for size in shape if size)
            if not 0 <= num * max(dtype.itemsize, 1) < 2**63 or min(shape, default=0) < 0:
                raise ValueError("its shape is too large for any memory")
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


@dataclass(frozen=True, slots=True)
class Deflated(ListedFile):
    """A compressed member of a zip, which is inflated as a whole."""

    path: str
    file: ListedFile
    record: Record
    is_packed = True

    @property
    def nbytes(self) -> int:
        return self.record.nbytes

    def extent(self, offset: int, nbytes: int) -> Extent:
        return Extent(self.path, self.record.offset, self.record.packed_nbytes or 0)

    def beginning(self, there: Reader) -> bytes:
        """Return the first bytes, which may have the header of an array."""
        try:
            packed = there.read(self.record.offset, min(self.record.packed_nbytes or 0, 2 * _MAX_HEADER_NBYTES))
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, _MAX_HEADER_NBYTES)
        except zlib.error:
            raise self._damaged() from None

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """Inflate it; CheckpointError if its bytes are damaged."""
        from tensornp.core.convert.budget import Budget

        Budget(None, "unpack the file first").take(self.nbytes)
        try:
            packed = self.file.read(self.record.offset, self.record.packed_nbytes or 0)
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, self.nbytes + 1)
        except zlib.error:
            raise self._damaged() from None
        except MemoryError:
            said = f"there is no memory for the {self.nbytes:,} bytes of the compressed array"
            raise TooLargeError(f"{said}; unpack the file first", self.nbytes) from None
        if len(data) != self.nbytes or zlib.crc32(data) != self.record.checksum:
            raise self._damaged()
        yield _Inflated(data)

    def _damaged(self) -> CheckpointError:
        said = "damaged compressed bytes, which end early or do not have their checksum"
        return CheckpointError(f"{self.path!r} has {said}")


class _Inflated(Reader):
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_into(self, target: Array, offset: int) -> None:
        target[:] = np.frombuffer(self._data, np.uint8, target.nbytes, offset)

"""Arrays as `numpy.save` writes them: the header is parsed as a literal, and no element is a pickle that is run."""

from __future__ import annotations

import ast
import math
import re
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.strides import contiguous, unless_in_order
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.files.source_file import Bytes, ListedFile, Reader
from tensornp.models.formats.contents import Contents
from tensornp.models.names.quoted import MAX_SHOWN, cut, shown_name

NPY_MAGIC = b"\x93NUMPY"
NO_NPY = "it does not begin as NumPy's files do"
SUFFIX = ".npy"
_LENGTH_NBYTES = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
"""Bytes that tell the length of the header, for each version of the format."""
_MAX_HEADER_NBYTES = 10_000
"""What NumPy takes at most: longer literals have crashed Python."""
_MAX_NBYTES = 2**63 - 1
_MAX_DTYPE = 32
"""Characters of a dtype."""
_KEYS = {"descr", "fortran_order", "shape"}
_NUMBERS = re.compile(r"[<>=|]?(?:[biufc]\d{1,2}|[?bBhHiIlLqQefdgFDG])")
_OTHERS = re.compile(r"[<>=|]?([OSaUVMm])(\d{0,9})(\[\w*\])?")
_OTHER_WORDS = {
    "O": "its elements are Python objects in a pickle, which is not run",
    "S": "its elements are strings of bytes",
    "a": "its elements are strings of bytes",
    "U": "its elements are strings",
    "M": "its elements are dates",
    "m": "its elements are times",
}
_BYTES_PER_UNIT = {"U": 4}
_PERHAPS = {1: "perhaps float8; view them as what they are", 2: "perhaps bfloat16; view them as what they are"}
"""What NumPy writes of the dtypes that it does not have."""


class NpyHeader(NamedTuple):
    """What the header says; `first` is where the elements begin, and `problem` says why they are not read."""

    shape: tuple[int, ...]
    dtype: str
    is_swapped: bool
    is_fortran: bool
    first: int
    nbytes: int
    problem: str = ""


def read_npy(file: ListedFile) -> Contents:
    """Return what a file of `numpy.save` holds, and read no element; CheckpointError if it is not sound."""
    with file.opened() as there:
        try:
            header = read_npy_header(there, 0, file.nbytes)
        except CheckpointError as error:
            raise CheckpointError(f"{file.path!r} is not a valid {SUFFIX} file: {error}") from None
    entry = npy_weight(header, "array", f"numpy.load({file.path!r})", file)
    rest = file.nbytes - header.first - header.nbytes
    said = f"{counted(rest, 'byte')} at its end can belong to no array that is listed"
    return Contents([entry], {}, [NotListed(said)] if rest else [])


def npy_weight(header: NpyHeader, name: str, code: str, file: Bytes, note: str = "") -> WeightEntry:
    """Return the weight that a header tells of."""
    strides = unless_in_order(header.shape, contiguous(header.shape[::-1])[::-1]) if header.is_fortran else None
    source = FileSource(header.shape, header.dtype, file, header.first, strides, header.is_swapped)
    said = [note, "other byte order" if header.is_swapped else ""]
    said += ["Fortran order"] if header.is_fortran and len(header.shape) > 1 else []
    note = ", ".join(filter(None, said))
    # NumPy refuses a pickle as well, and this is no place to allow one.
    code = "" if header.dtype == "object" else code
    return weight_in(source, name, code, kind="array", nbytes=header.nbytes, note=note, problem=header.problem)


def read_npy_header(there: Reader, start: int, nbytes: int) -> NpyHeader:
    """Return what is said at the beginning of the `nbytes` bytes from `start` on.

    Raises
    ------
    CheckpointError
        If the header is malformed, or tells of more elements than there are; in the words of the sentence's end.
    """
    stop = start + nbytes
    at = len(NPY_MAGIC) + 2
    begins = there.read(start, min(nbytes, at + 4)).tobytes()
    if not begins.startswith(NPY_MAGIC) or len(begins) < at:
        raise CheckpointError(NO_NPY)
    version = (begins[at - 2], begins[at - 1])
    if version not in _LENGTH_NBYTES:
        raise CheckpointError(f"its format is of version {version[0]}.{version[1]}, which is not known")
    taken = at + _LENGTH_NBYTES[version]
    length = int.from_bytes(begins[at:taken], "little")
    if length > _MAX_HEADER_NBYTES:
        raise CheckpointError(f"the header says {length:,} bytes, more than the limit of {_MAX_HEADER_NBYTES:,}")
    if taken + length > nbytes:
        raise CheckpointError(f"the header says {length:,} bytes, only {max(nbytes - taken, 0):,} follow")
    first = start + taken + length
    # What is compressed is read upwards, each byte once.
    rest = there.read(start + len(begins), max(taken + length - len(begins), 0)).tobytes()
    text = (begins[taken : taken + length] + rest).decode("utf-8" if version == (3, 0) else "latin1", "replace")
    shape, described, is_fortran = _parsed(text)
    return _checked(shape, described, is_fortran, first, stop - first)


def _parsed(text: str) -> tuple[tuple[int, ...], Any, bool]:
    """Return shape, description of the dtype, and whether the first index runs fastest."""
    if "\\" in text:
        # Python would warn of some; no number is told with one.
        raise CheckpointError("its header has a backslash")
    try:
        told = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise CheckpointError("the header is not a Python literal") from None
    if not isinstance(told, dict) or told.keys() != _KEYS:
        raise CheckpointError("its header does not tell of descr, fortran_order and shape alone")
    shape, is_fortran = told["shape"], told["fortran_order"]
    if not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape):
        raise CheckpointError("the shape is not a tuple of sizes")
    if not isinstance(is_fortran, bool):
        raise CheckpointError("its fortran_order is neither True nor False")
    return shape, told["descr"], is_fortran


def _checked(shape: tuple[int, ...], described: Any, is_fortran: bool, first: int, left: int) -> NpyHeader:
    """Return the header, whose elements are all there."""
    dtype, itemsize, is_swapped, problem = _dtype_of(described)
    if math.prod(size for size in shape if size) * max(itemsize or 1, 1) > _MAX_NBYTES:
        raise CheckpointError("its shape is too large for any memory")
    # How long a pickle is, nothing tells.
    nbytes = math.prod(shape) * itemsize if itemsize is not None else left
    if nbytes > left:
        raise CheckpointError(
            f"its shape {cut(str(shape), MAX_SHOWN)} of {shown_name(dtype)} needs {nbytes:,} bytes, "
            f"and {left:,} follow its header"
        )
    return NpyHeader(shape, dtype, is_swapped, is_fortran, first, nbytes, problem)


def _dtype_of(described: Any) -> tuple[str, int | None, bool, str]:
    """Return the name of a dtype, its bytes if they are told, if they are swapped, and why values are not read.

    NumPy makes a dtype of short words for numbers only: nothing else reaches its parser.
    """
    if isinstance(described, (list, tuple)):
        return "structured", _nbytes_of_fields(described), False, "its elements are structures of several fields"
    if isinstance(described, str) and _NUMBERS.fullmatch(described):
        try:
            dtype = np.dtype(described)
        except TypeError:
            if described.endswith("f1"):
                return described, 1, False, f"its elements are 1-byte floats, {_PERHAPS[1]}"
            return described, None, False, f"its dtype {shown_name(described)} is not known"
        if dtype.name in KNOWN and stored_dtype(dtype.name).itemsize == dtype.itemsize:
            return dtype.name, dtype.itemsize, not dtype.isnative, ""
        return dtype.name, dtype.itemsize, False, f"its elements are of {dtype.name}, which not every machine has"
    other = _OTHERS.fullmatch(described) if isinstance(described, str) else None
    if other is None:
        return "unknown", None, False, f"its dtype {shown_name(str(described)[:_MAX_DTYPE])} is not known"
    letter, length = other[1], int(other[2] or 0)
    if letter == "O":
        return "object", None, False, _OTHER_WORDS[letter]
    if letter != "V":
        return described, length * _BYTES_PER_UNIT.get(letter, 1), False, _OTHER_WORDS[letter]
    said = f", {_PERHAPS[length]}" if length in _PERHAPS else ""
    return f"V{length}", length, False, f"its elements are {length}-byte voids{said}"


def _nbytes_of_fields(fields: Any) -> int | None:
    """Return the bytes of one structure, whose gaps are fields too; None where a field tells of none."""
    total = 0
    for field in fields:
        if not isinstance(field, tuple) or len(field) not in (2, 3):
            return None
        shape = field[2] if len(field) == 3 else ()
        shape = shape if isinstance(shape, tuple) else (shape,)
        _, itemsize, _, _ = _dtype_of(field[1])
        if itemsize is None or not all(type(size) is int and size >= 0 for size in shape):
            return None
        total += itemsize * math.prod(shape)
    return total

"""The header of a GGUF file: key-values and what tensors there are, by positioned reads of bounded size.

The library maps the file, which ends the process if the file shrinks. What it refuses by structure is refused here.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from tensornp.errors import CheckpointError
from tensornp.models.files.source_file import ListedFile, Reader
from tensornp.models.names.quoted import shown_name

GGUF_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
MAX_HEADER_NBYTES = 100_000_000
_MAX_KEYS = 100_000
_MAX_TENSORS = 1_000_000
_MAX_NAME_NBYTES = 2**16
_MAX_TEXT_NBYTES = 2**20
_MAX_NDIM = 1000
"""Dimensions that are listed; NumPy has fewer."""
_MAX_KEPT = 16
"""Values of an array that are kept; of a longer one, a few are told."""
_NUM_TOLD = 3
_PIECE_NBYTES = 2**18
_ALIGNMENT = "general.alignment"
_DEFAULT_ALIGNMENT = 32
_UINT32, _TEXT, _ARRAY = 4, 8, 9
_SCALARS = {
    0: ("uint8", "B"), 1: ("int8", "b"), 2: ("uint16", "H"), 3: ("int16", "h"), 4: ("uint32", "I"), 5: ("int32", "i"),
    6: ("float32", "f"), 7: ("bool", "?"), 10: ("uint64", "Q"), 11: ("int64", "q"), 12: ("float64", "d"),
}  # fmt: skip
"""The types of values by their numbers: their names, and their letters in `struct`."""


class GgufTensor(NamedTuple):
    """What is told of one tensor: the shape in NumPy's order, the number of its type, and where it lies."""

    name: str
    shape: tuple[int, ...]
    type_number: int
    offset: int


class GgufHeader(NamedTuple):
    """What a header tells; `is_swapped` where the file is in the byte order that this machine does not have."""

    tensors: list[GgufTensor]
    metadata: dict[str, Any]
    is_big_endian: bool


def read_gguf_header(file: ListedFile) -> GgufHeader:
    """Return what the header of `file` says, and read no value.

    Raises
    ------
    CheckpointError
        If the header is malformed, or larger than the file or than what is read.
    ChangedFileError
        If the file changes meanwhile.
    """
    with file.opened() as there:
        try:
            return _header(there, file.nbytes)
        except CheckpointError as error:
            raise CheckpointError(f"{file.path!r} is not a valid GGUF file: {error}") from None


def _header(there: Reader, nbytes: int) -> GgufHeader:
    cursor = _Cursor(there, nbytes)
    if cursor.take(len(GGUF_MAGIC)) != GGUF_MAGIC:
        raise CheckpointError("it does not begin as one")
    version = cursor.number("I")
    if version % 2**16 == 0:
        # A small number whose bytes are in the other order.
        cursor.order, version = ">", int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in _VERSIONS:
        raise CheckpointError(f"it is of version {version:,}, and {_VERSIONS[0]} and {_VERSIONS[1]} are read")
    num_tensors, num_keys = cursor.number("Q"), cursor.number("Q")
    for count, most, words in ((num_tensors, _MAX_TENSORS, "tensors"), (num_keys, _MAX_KEYS, "keys")):
        if count > most:
            raise CheckpointError(f"it tells of {count:,} {words}, and {most:,} are read")
    metadata: dict[str, Any] = {"GGUF.version": version}
    alignment = _DEFAULT_ALIGNMENT
    for _ in range(num_keys):
        key, kind = cursor.name(), cursor.number("I")
        if key in metadata:
            raise CheckpointError(f"its key {shown_name(key)} is there twice")
        metadata[key] = _value(cursor, kind)
        if key == _ALIGNMENT:
            alignment = _checked_alignment(kind, metadata[key])
    told = [_tensor(cursor) for _ in range(num_tensors)]
    first = -(-cursor.at // alignment) * alignment
    tensors = {one.name: one._replace(offset=first + one.offset) for one in told}
    if len(tensors) < len(told):
        raise CheckpointError("it has two tensors of one name")
    return GgufHeader(list(tensors.values()), metadata, cursor.order == ">")


def _checked_alignment(kind: int, value: Any) -> int:
    if kind != _UINT32 or not value or value & (value - 1):
        raise CheckpointError("the alignment is not a power of two")
    return int(value)


def _tensor(cursor: _Cursor) -> GgufTensor:
    name, ndim = cursor.name(), cursor.number("I")
    if ndim > _MAX_NDIM:
        raise CheckpointError(f"{shown_name(name)} has {ndim:,} dimensions, at most {_MAX_NDIM} are allowed")
    sizes = cursor.numbers("Q", ndim)
    return GgufTensor(name, sizes[::-1], cursor.number("I"), cursor.number("Q"))


def _value(cursor: _Cursor, kind: int) -> Any:
    """Return a value of the type of that number; of a long array, a sentence."""
    if kind == _TEXT:
        return cursor.text()
    if kind in _SCALARS:
        return cursor.number(_SCALARS[kind][1])
    if kind != _ARRAY:
        raise CheckpointError(f"a value is of type {kind:,}, which is not known")
    inner, count = cursor.number("I"), cursor.number("Q")
    num_kept = count if count <= _MAX_KEPT else _NUM_TOLD
    if inner == _TEXT:
        name, kept = "strings", [cursor.text() for _ in range(num_kept)]
        cursor.skip_texts(count - num_kept)
    elif inner in _SCALARS:
        name, letter = _SCALARS[inner]
        kept = list(cursor.numbers(letter, num_kept))
        cursor.skip((count - num_kept) * struct.calcsize(f"={letter}"))
    else:
        raise CheckpointError(f"an array has values of type {inner:,}, which is not known")
    return kept if count <= _MAX_KEPT else f"{count:,} {name}: {', '.join(map(repr, kept))}, …"


class _Cursor:
    """Reads a header from its beginning on, in pieces, and never past its end."""

    def __init__(self, there: Reader, nbytes: int) -> None:
        self._there, self._limit = there, min(nbytes, MAX_HEADER_NBYTES)
        self._data, self._base = b"", 0
        self.at, self.order = 0, "<"

    def take(self, count: int) -> bytes:
        """Return so many bytes."""
        first = self._at_hand(count)
        self.at += count
        return self._data[first : first + count]

    def skip(self, count: int) -> None:
        """Pass so many bytes, and read none of them."""
        self._check(count)
        self.at += count

    def number(self, letter: str) -> Any:
        """Return one number of the type that `struct` calls so."""
        return self.numbers(letter, 1)[0]

    def numbers(self, letter: str, count: int) -> tuple[Any, ...]:
        """Return some numbers."""
        form = f"{self.order}{count}{letter}"
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def name(self) -> str:
        """Return the name of a key or a tensor."""
        nbytes = self.number("Q")
        if nbytes > _MAX_NAME_NBYTES:
            raise CheckpointError(f"a name has {nbytes:,} bytes, at most {_MAX_NAME_NBYTES:,} are allowed")
        return self.take(nbytes).decode("utf-8", "replace")

    def text(self) -> str:
        """Return a text; of a very long one, the beginning."""
        nbytes = self.number("Q")
        self._check(nbytes)
        text = self.take(min(nbytes, _MAX_TEXT_NBYTES)).decode("utf-8", "replace")
        self.skip(max(nbytes - _MAX_TEXT_NBYTES, 0))
        return text if nbytes <= _MAX_TEXT_NBYTES else f"{text}…"

    def skip_texts(self, count: int) -> None:
        """Pass so many texts: a vocabulary has some hundred thousands."""
        unpack_from, form = struct.Struct(f"{self.order}Q").unpack_from, struct.Struct(f"{self.order}Q").size
        while count:
            at = self._at_hand(form)
            data = self._data
            last = len(data) - form
            while count and at <= last:
                at += form + unpack_from(data, at)[0]
                count -= 1
            # The last one may reach past what is at hand.
            self.skip(self._base + at - self.at)

    def _at_hand(self, count: int) -> int:
        """Return where in the piece at hand so many bytes are, which are read if they are not in it."""
        first = self.at - self._base
        if not 0 <= first <= len(self._data) - count:
            self._check(count)
            self._data = self._there.read(self.at, min(max(count, _PIECE_NBYTES), self._limit - self.at)).tobytes()
            self._base, first = self.at, 0
        return first

    def _check(self, count: int) -> None:
        if count > self._limit - self.at:
            raise CheckpointError(
                f"its header would end behind byte {self.at + count:,}, and {self._limit:,} are there"
            )

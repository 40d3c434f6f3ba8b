"""GGUF files: a header by positioned reads, packed values by the library `gguf`.

The library maps the file, which ends the process if the file shrinks, so only its decoding functions are used.
Big-endian files are refused.
"""

from __future__ import annotations

import io
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.core.tensor.strides import BLOCK_NUMEL
from tensornp.errors import CheckpointError, MissingLibraryError, NoDataError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.entries.take import VALUES, Array, Ranges
from tensornp.models.files.source_file import ListedFile, overlapping
from tensornp.models.files.zip_directory import ByteRange
from tensornp.models.formats.table import Contents
from tensornp.models.names.quoted import shown_name

GGUF_MAGIC = b"GGUF"
MAX_HEADER_NBYTES = 100_000_000
_MAX_TENSORS = 1_000_000
_MAX_NDIM = 1000
"""Dimensions that are listed; NumPy has fewer."""
_MAX_KEPT = 16
"""Values of an array that are kept; of a longer one, a few are told."""
_NUM_TOLD = 3
_PIECE_NBYTES = 2**18
_UINT32, _TEXT, _ARRAY = 4, 8, 9
_SCALARS = {
    0: ("uint8", "B"), 1: ("int8", "b"), 2: ("uint16", "H"), 3: ("int16", "h"), 4: ("uint32", "I"), 5: ("int32", "i"),
    6: ("float32", "f"), 7: ("bool", "?"), 10: ("uint64", "Q"), 11: ("int64", "q"), 12: ("float64", "d"),
}  # fmt: skip
"""The types of values by their numbers: their names, and their letters in `struct`."""
PLAIN = {0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 30: "bfloat16"}
"""The types that torch has, by the number that GGML gives them."""


@dataclass(frozen=True, slots=True)
class GgmlBlocks:
    """Decodes the blocks of one GGML type by the library `gguf`; `packing` is their elements and bytes."""

    name: str
    packing: tuple[int, int]

    def __call__(self, stored: Array, ranges: Ranges) -> Array:
        """Return the values in `ranges` of the blocks that hold them, some rows at a time."""
        made = np.empty(tuple(map(len, ranges)), VALUES)
        if not made.size:
            return made
        (numel, _), num_blocks = self.packing, stored.shape[-1]
        wanted = np.asarray(ranges[-1]) - min(ranges[-1]) // numel * numel
        is_whole = len(wanted) == num_blocks * numel and ranges[-1].step == 1
        rows, lines = np.ascontiguousarray(stored).reshape(-1, num_blocks), made.reshape(-1, len(wanted))
        step = max(BLOCK_NUMEL // (num_blocks * numel), 1)
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            values = self._values(some.reshape(-1)).reshape(len(some), -1)
            lines[first : first + step] = values if is_whole else values[:, wanted]
        return made

    @np.errstate(all="ignore")
    def _values(self, blocks: Array) -> Array:
        try:
            from gguf.constants import GGMLQuantizationType
            from gguf.quants import dequantize
        except ImportError:
            raise MissingLibraryError(
                f"the values of {self.name} need the library gguf; pip install 'tensornp[gguf]' brings it"
            ) from None
        try:
            return np.asarray(dequantize(blocks.view(np.uint8), GGMLQuantizationType[self.name]))
        except (NotImplementedError, KeyError):
            raise NoDataError(f"the library gguf has no values of {self.name}; a newer one may have") from None


QUANTIZED = {
    number: GgmlBlocks(name, (block_numel, block_nbytes))
    for number, name, block_numel, block_nbytes in (
        (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20), (6, "Q5_0", 32, 22), (7, "Q5_1", 32, 24), (8, "Q8_0", 32, 34),
        (9, "Q8_1", 32, 40), (10, "Q2_K", 256, 84), (11, "Q3_K", 256, 110), (12, "Q4_K", 256, 144),
        (13, "Q5_K", 256, 176), (14, "Q6_K", 256, 210), (15, "Q8_K", 256, 292), (16, "IQ2_XXS", 256, 66),
        (17, "IQ2_XS", 256, 74), (18, "IQ3_XXS", 256, 98), (19, "IQ1_S", 256, 50), (20, "IQ4_NL", 32, 18),
        (21, "IQ3_S", 256, 110), (22, "IQ2_S", 256, 82), (23, "IQ4_XS", 256, 136), (29, "IQ1_M", 256, 56),
        (34, "TQ1_0", 256, 54), (35, "TQ2_0", 256, 66), (39, "MXFP4", 32, 17), (40, "NVFP4", 64, 36),
        (41, "Q1_0", 128, 18),
    )
}  # fmt: skip
"""The types that GGML packs: how many values in how many bytes."""


def read_gguf(file: ListedFile) -> Contents:
    """Return the weights and metadata of a GGUF file; CheckpointError if its header is malformed."""
    try:
        with file.scanned() as there:
            header = ByteRange(there, 0, min(file.nbytes, MAX_HEADER_NBYTES), "its header")
            entries, metadata = _contents(_Cursor(header, _PIECE_NBYTES), file)
    except CheckpointError as error:
        raise CheckpointError(f"{file.path!r} is not a valid GGUF file: {error}") from None
    overlap = set(overlapping({entry.name: entry.extents[0][1:] for entry in entries if not entry.problem}))
    said = "its bytes overlap those of another one"
    return Contents([one._with_(problem=said) if one.name in overlap else one for one in entries], metadata, [])


def _contents(cursor: _Cursor, file: ListedFile) -> tuple[list[WeightEntry], dict[str, Any]]:
    magic, version = cursor.take(len(GGUF_MAGIC)), cursor.number("I")
    if magic != GGUF_MAGIC or version not in (2, 3):
        raise CheckpointError(f"it is of version {version:,} or another byte order, and little-endian 2 and 3 are read")
    num_tensors, num_keys = cursor.number("Q"), cursor.number("Q")
    if max(num_tensors, num_keys) > _MAX_TENSORS:
        raise CheckpointError(f"it tells of {num_tensors:,} tensors and {num_keys:,} keys; {_MAX_TENSORS:,} are read")
    metadata: dict[str, Any] = {"GGUF.version": version}
    alignment = 32
    for _ in range(num_keys):
        key, kind = cursor.text(), cursor.number("I")
        if key in metadata:
            raise CheckpointError(f"its key {shown_name(key)} is there twice")
        metadata[key] = _value(cursor, kind)
        if key == "general.alignment":
            alignment = metadata[key]
            if kind != _UINT32 or alignment.bit_count() != 1:
                raise CheckpointError("the alignment is not a power of two")
    told: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for _ in range(num_tensors):
        name, ndim = cursor.text(), cursor.number("I")
        if name in told or ndim > _MAX_NDIM:
            raise CheckpointError(f"{shown_name(name)} is there twice, or has {ndim:,} dimensions")
        told[name] = cursor.numbers("Q", ndim)[::-1], cursor.number("I"), cursor.number("Q")
    first = -(-cursor.tell() // alignment) * alignment
    return [_entry(file, name, shape, kind, first + at) for name, (shape, kind, at) in told.items()], metadata


def _entry(file: ListedFile, name: str, shape: tuple[int, ...], number: int, offset: int) -> WeightEntry:
    """Return the weight; its `problem` says why it is not read, and hides no other."""
    codec = QUANTIZED.get(number)
    dtype = codec.name if codec is not None else PLAIN.get(number, f"ggml type {number}")
    nbytes, problem = 0, ""
    if codec is not None:
        nbytes = math.prod(shape) // codec.packing[0] * codec.packing[1]
        if not shape or shape[-1] % codec.packing[0]:
            problem = f"its rows are no blocks of {codec.packing[0]}, which {dtype} takes"
        elif dtype in ("Q8_1", "Q8_K"):
            problem = f"it is of {dtype}, of which the library gguf has no values"
    elif number in PLAIN:
        nbytes = math.prod(shape) * stored_dtype(dtype).itemsize
    else:
        problem = f"its type {number:,} is not known"
    if offset + nbytes > file.nbytes:
        problem = problem or f"its bytes would end at {offset + nbytes:,}, and the file has {file.nbytes:,}"
    read = "t.data" if number in PLAIN and dtype != "bfloat16" else "gguf.dequantize(t.data, t.tensor_type)"
    code = f"next({read} for t in gguf.GGUFReader({file.path!r}).tensors if t.name == {name!r})"
    source = FileSource(shape, dtype, file, offset, codec=codec)
    return weight_in(source, name, code, nbytes=nbytes, problem=problem)


def _value(cursor: _Cursor, kind: int) -> Any:
    """Return a value of the type of that number; of a long array, a sentence."""
    if kind == _TEXT:
        return cursor.text()
    if kind in _SCALARS:
        return cursor.number(_SCALARS[kind][1])
    inner, count = (cursor.number("I"), cursor.number("Q")) if kind == _ARRAY else (kind, 0)
    num_kept = count if count <= _MAX_KEPT else _NUM_TOLD
    if inner == _TEXT and kind == _ARRAY:
        name, kept = "strings", [cursor.text() for _ in range(num_kept)]
        # A vocabulary has some hundred thousands.
        unpack, take = struct.Struct("<Q").unpack, cursor.take
        for _ in range(count - num_kept):
            take(unpack(take(8))[0])
    elif inner in _SCALARS:
        name, letter = _SCALARS[inner]
        kept = list(cursor.numbers(letter, num_kept))
        cursor.skip((count - num_kept) * struct.calcsize(f"={letter}"))
    else:
        raise CheckpointError(f"a value is of type {inner:,}, which is not known")
    return kept if count <= _MAX_KEPT else f"{count:,} {name}: {', '.join(map(repr, kept))}, …"


class _Cursor(io.BufferedReader):
    """Reads a header from its beginning on."""

    raw: ByteRange

    def take(self, count: int) -> bytes:
        self._check(count)
        return self.read(count)

    def _check(self, count: int) -> None:
        if count > self.raw.nbytes - self.tell():
            raise CheckpointError(f"its header is cut off: {count:,} bytes are to follow byte {self.tell():,}")

    def number(self, letter: str) -> Any:
        return self.numbers(letter, 1)[0]

    def numbers(self, letter: str, count: int) -> tuple[Any, ...]:
        form = f"<{count}{letter}"
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def text(self) -> str:
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def skip(self, count: int) -> None:
        self._check(count)
        self.seek(count, io.SEEK_CUR)

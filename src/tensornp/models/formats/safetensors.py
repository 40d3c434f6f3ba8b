"""Safetensors files: a header that the library would refuse is refused.

Two exceptions: a dtype that is not known hides only its own tensor, if all offsets are sound, and of two equal keys the
last counts. JSON that Python reads and Rust refuses, such as lone surrogates, is taken.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import FileSource, why_no_array
from tensornp.models.entries.take import Shape
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.table import NUM_LOOKED_AT, SAFETENSORS, Contents
from tensornp.models.names.quoted import MAX_SHOWN, cut, shown_name

MAX_HEADER_NBYTES = 100_000_000
"""The largest header that the library takes."""
_MAX_SIZE = 2**64 - 1
_MAX_NUM_BITS = 8 * _MAX_SIZE
DTYPES: dict[str, tuple[str, int]] = {
    "BOOL": ("bool", 8), "U8": ("uint8", 8), "I8": ("int8", 8), "U16": ("uint16", 16), "I16": ("int16", 16),
    "U32": ("uint32", 32), "I32": ("int32", 32), "U64": ("uint64", 64), "I64": ("int64", 64), "F16": ("float16", 16),
    "BF16": ("bfloat16", 16), "F32": ("float32", 32), "F64": ("float64", 64), "C64": ("complex64", 64),
    "F8_E4M3": ("float8_e4m3fn", 8), "F8_E5M2": ("float8_e5m2", 8), "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8), "F8_E8M0": ("float8_e8m0fnu", 8), "F4": ("float4_e2m1fn_x2", 4),
    "F6_E2M3": ("", 6), "F6_E3M2": ("", 6),
}  # fmt: skip
"""torch's name of each dtype of the format (empty if torch has none), and the bits of a value."""
_OTHERS = {
    b"\x80": "a pickle, but none of torch.save",
    b"\x1f\x8b": "a gzip file; unpack it first",
    b"\x89HDF": "an HDF5 file, as of Keras (.h5); h5py opens it, and weights takes a dictionary of its arrays",
    b"version https://git-lfs": "a Git LFS pointer in the place of the file; 'git lfs pull' brings that",
    b"<": "HTML or XML, such as a page that was saved in the place of the file",
}
"""What a file of no format is, by its first bytes."""


def read_safetensors(file: ListedFile) -> Contents:
    """Return the weights of a safetensors file; CheckpointError for another kind, or a malformed header."""
    try:
        return _contents(file)
    except CheckpointError as error:
        begins = file.read(0, min(file.nbytes, NUM_LOOKED_AT))
        seems = next((words for magic, words in _OTHERS.items() if begins.lstrip().startswith(magic)), "")
        if seems and begins[4:9] != b"\0\0\0\0{":
            raise CheckpointError(f"{file.path!r} seems to be {seems}") from None
        if not file.path.endswith(SAFETENSORS):
            raise CheckpointError(f"{file.path!r} is of no format that is read, nor a valid file of its name") from None
        raise CheckpointError(f"{file.path!r} is not a valid safetensors file: {error}") from None


def _contents(file: ListedFile) -> Contents:
    with file.scanned() as there:
        length = int.from_bytes(there.read(0, min(8, file.nbytes)), "little")
        if file.nbytes < 8 or length > min(MAX_HEADER_NBYTES, file.nbytes - 8):
            limit = f"{MAX_HEADER_NBYTES:,} are the limit, and {max(file.nbytes - 8, 0):,} follow"
            raise CheckpointError(f"the header says {length:,} bytes; {limit}")
        told = _parsed(there.read(8, length))
    metadata = told.pop("__metadata__", None)
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError("__metadata__ is not a mapping from text to text")
    entries: list[WeightEntry] = []
    first, end, opened = 8 + length, 0, f"safetensors.safe_open({file.path!r}, 'pt')"
    # Many weights have one dtype and shape: benchmark row "200,000 tensors in a file".
    in_torch = lru_cache(maxsize=1024)(_in_torch)
    for start, stop, name, dtype, shape in sorted([_checked(name, facts) for name, facts in told.items()]):
        if start != end or stop < start:
            said = "overlap with those before" if start < end else "leave a hole before"
            raise CheckpointError(f"the bytes of {shown_name(name)}, {start:,} to {stop:,}, {said}")
        end = stop
        own, own_shape, num_bits, problem = in_torch(dtype, shape)
        if num_bits > _MAX_NUM_BITS:
            raise CheckpointError(f"the shape of {shown_name(name)} is too large for any memory")
        if num_bits != 8 * (stop - start) and dtype in DTYPES:
            said = f"{shown_name(name)} of shape {cut(str(shape), MAX_SHOWN)} and dtype {dtype}"
            raise CheckpointError(f"{said} needs {num_bits:,} bits, and has {8 * (stop - start):,}")
        source, code = FileSource(own_shape, own, file, first + start), f"{opened}.get_tensor({name!r})"
        entries.append(WeightEntry(name, "tensor", own_shape, own, stop - start, source, code, problem=problem))
    if first + end != file.nbytes:
        left = f"{counted(file.nbytes - first - end, 'byte')} at its end can belong to no tensor"
        few = f"it needs {first + end:,} bytes, and has {file.nbytes:,}"
        raise CheckpointError(few if first + end > file.nbytes else left)
    return Contents(entries, metadata, [])


def _parsed(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        raise CheckpointError("its header does not begin with a brace")
    try:
        # Of two equal names the last counts, as in the library.
        told: dict[str, Any] = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise CheckpointError("its header is not JSON in UTF-8") from None
    return told


def _checked(name: str, facts: Any) -> tuple[int, int, str, str, Shape]:
    """Return begin, end, name, dtype and shape of a tensor."""
    try:
        dtype, shape, (start, stop) = facts["dtype"], facts["shape"], facts["data_offsets"]
        is_sound = type(dtype) is str and type(shape) is list
        # A generator would take twice as long.
        for size in (start, stop, *shape):
            is_sound = is_sound and type(size) is int and 0 <= size <= _MAX_SIZE
    except (KeyError, TypeError, ValueError):
        is_sound = False
    if not is_sound:
        raise CheckpointError(f"{shown_name(name)} has no sound dtype, shape and data_offsets")
    return start, stop, name, dtype, tuple(shape)


def _in_torch(told: str, shape: Shape) -> tuple[str, Shape, int, str]:
    """Return dtype and shape as torch has them, the number of bits, and why the values are not read."""
    if told not in DTYPES:
        return told, shape, 0, f"its dtype {shown_name(told)} is not known"
    dtype, num_bits = DTYPES[told]
    for size in shape:
        num_bits *= size
        if num_bits > _MAX_NUM_BITS:
            # The product of very many sizes would take minutes.
            break
    if not dtype:
        return told, shape, num_bits, f"torch has no dtype for {told}"
    if dtype != "float4_e2m1fn_x2":
        return dtype, shape, num_bits, why_no_array(shape)
    if not shape or shape[-1] % 2:
        return told, shape, num_bits, "its last dimension is odd, and two values share a byte"
    # The file counts values, and torch counts bytes.
    return dtype, (*shape[:-1], shape[-1] // 2), num_bits, why_no_array(shape)

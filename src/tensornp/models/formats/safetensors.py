"""Safetensors files: a header that the library would refuse is refused.

One exception: a dtype that is not known hides only its own tensor, if all offsets are sound. JSON that Python reads
and Rust refuses, such as lone surrogates, is taken.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.entries.take import Shape
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.table import NUM_LOOKED_AT, SAFETENSORS, Contents
from tensornp.models.names.quoted import MAX_SHOWN, cut, shown_name

MAX_HEADER_NBYTES = 100_000_000
"""The largest header that the library takes."""
_MAX_SIZE = 2**64 - 1
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
    metadata = told.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError("__metadata__ is not a mapping from text to text")
    entries: list[WeightEntry] = []
    first, end = 8 + length, 0
    for start, stop, name, dtype, shape in sorted(_checked(name, facts) for name, facts in told.items()):
        if start != end or stop < start:
            said = "overlap with those before" if start < end else "leave a hole before"
            raise CheckpointError(f"the bytes of {shown_name(name)}, {start:,} to {stop:,}, {said}")
        end = stop
        own, own_shape, problem = _dtype_of(name, dtype, shape, stop - start)
        code = f"safetensors.safe_open({file.path!r}, 'pt').get_tensor({name!r})"
        source = FileSource(own_shape, own, file, first + start)
        entries.append(weight_in(source, name, code, nbytes=stop - start, problem=problem))
    if first + end != file.nbytes:
        left = f"{counted(file.nbytes - first - end, 'byte')} at its end can belong to no tensor"
        few = f"it needs {first + end:,} bytes, and has {file.nbytes:,}"
        raise CheckpointError(few if first + end > file.nbytes else left)
    return Contents(entries, metadata, [])


def _parsed(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        raise CheckpointError("its header does not begin with a brace")
    try:
        told: dict[str, Any] = json.loads(text.decode("utf-8"), object_pairs_hook=_without_twins)
    except CheckpointError:
        raise
    except (ValueError, RecursionError):
        raise CheckpointError("its header is not JSON in UTF-8") from None
    if not isinstance(told, dict):
        raise CheckpointError("its header is not a mapping from names to tensors")
    return told


def _without_twins(pairs: list[tuple[str, Any]]) -> Any:
    """Return a JSON object, or a tuple of the facts of a tensor; raise CheckpointError for a repeated key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twin, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise CheckpointError(f"its header has the key {shown_name(twin)} twice")
    try:
        dtype, shape, offsets = found["dtype"], found["shape"], found["data_offsets"]
    except KeyError:
        return found
    if type(dtype) is str and type(shape) is list and type(offsets) is list:
        # The garbage collector would take as long for a million lists and mappings as all else together.
        return dtype, tuple(shape), tuple(offsets)
    return found


def _checked(name: str, facts: Any) -> tuple[int, int, str, str, Shape]:
    """Return begin, end, name, dtype and shape of a tensor."""
    if type(facts) is not tuple:
        raise CheckpointError(f"{shown_name(name)} has no dtype, shape and data_offsets")
    dtype, shape, offsets = facts
    is_sound = len(offsets) == 2
    # A generator would take twice as long.
    for size in (*offsets, *shape):
        is_sound = is_sound and type(size) is int and 0 <= size <= _MAX_SIZE
    if not is_sound:
        raise CheckpointError(f"{shown_name(name)} has a shape or offsets of a wrong type")
    return offsets[0], offsets[1], name, dtype, shape


def _dtype_of(name: str, told: str, shape: Shape, nbytes: int) -> tuple[str, Shape, str]:
    """Return dtype and shape as torch has them, and why the values are not read."""
    if told not in DTYPES:
        return told, shape, f"its dtype {shown_name(told)} is not known"
    dtype, bits = DTYPES[told]
    numel = 1
    for size in shape:
        numel *= size
        if numel > _MAX_SIZE:
            raise CheckpointError(f"the shape of {shown_name(name)} is too large for any memory")
    if numel * bits != 8 * nbytes:
        said = f"{shown_name(name)} of shape {cut(str(shape), MAX_SHOWN)} and dtype {told}"
        raise CheckpointError(f"{said} needs {numel * bits:,} bits, and has {8 * nbytes:,}")
    if dtype != "float4_e2m1fn_x2":
        return dtype or told, shape, "" if dtype else f"torch has no dtype for {told}"
    if not shape or shape[-1] % 2:
        return told, shape, "its last dimension is odd, and two values share a byte"
    # The file counts values, and torch counts bytes.
    return dtype, (*shape[:-1], shape[-1] // 2), ""

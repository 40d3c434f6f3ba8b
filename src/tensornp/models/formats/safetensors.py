"""Safetensors files: a header that the library would refuse is refused.

One exception: a dtype that is not known hides only its own tensor, if all offsets are sound. JSON that Python reads
and Rust refuses, such as lone surrogates, is taken.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

from tensornp.core.lowlevel.text import counted
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.contents import Contents
from tensornp.models.formats.table import NUM_LOOKED_AT, SAFETENSORS, what_it_seems
from tensornp.models.names.quoted import MAX_SHOWN, cut, shown_name
from tensornp.models.reading.take import Shape

MAX_HEADER_NBYTES = 100_000_000
"""The largest header that the library takes."""
SHARDING_INFO = "DCP_SHARDING_INFO"
_LENGTH_NBYTES = 8
_MAX_SIZE = 2**64 - 1
_FACTS = {"dtype", "shape", "data_offsets"}
DTYPES: dict[str, tuple[str, int]] = {
    "BOOL": ("bool", 8), "U8": ("uint8", 8), "I8": ("int8", 8), "U16": ("uint16", 16), "I16": ("int16", 16),
    "U32": ("uint32", 32), "I32": ("int32", 32), "U64": ("uint64", 64), "I64": ("int64", 64), "F16": ("float16", 16),
    "BF16": ("bfloat16", 16), "F32": ("float32", 32), "F64": ("float64", 64), "C64": ("complex64", 64),
    "F8_E4M3": ("float8_e4m3fn", 8), "F8_E5M2": ("float8_e5m2", 8), "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8), "F8_E8M0": ("float8_e8m0fnu", 8), "F4": ("float4_e2m1fn_x2", 4),
    "F6_E2M3": ("", 6), "F6_E3M2": ("", 6),
}  # fmt: skip
"""torch's name of each dtype of the format (empty if torch has none), and the bits of a value."""


class StoredTensor(NamedTuple):
    """A tensor of a file, its bytes, and the reason why its values are not read."""

    name: str
    dtype: str
    shape: Shape
    offset: int
    nbytes: int
    problem: str = ""


class Header(NamedTuple):
    """The tensors of a file in the order of their bytes, and its metadata."""

    tensors: list[StoredTensor]
    metadata: dict[str, str]


_Told = tuple[int, int, str, str, Shape]
"""An unchecked tensor of a header: begin, end, name, dtype and shape."""


def read_safetensors(file: ListedFile) -> Contents:
    """Return the weights of a safetensors file; raise CheckpointError for another kind."""
    try:
        header = read_header(file)
    except CheckpointError:
        seems = what_it_seems(file.read(0, min(file.nbytes, NUM_LOOKED_AT)))
        if seems:
            raise CheckpointError(f"{file.path!r} seems to be {seems}") from None
        if file.path.endswith((".bin", ".pt", ".pth", ".ckpt")):
            said = "is neither a file of torch.save nor a sound one of safetensors"
            raise CheckpointError(f"{file.path!r} {said}") from None
        if not file.path.endswith(SAFETENSORS):
            raise CheckpointError(f"{file.path!r} is of no format that is read") from None
        raise
    return Contents(list(_entries_in(file, header)), header.metadata, [])


def _entries_in(file: ListedFile, header: Header) -> Iterator[WeightEntry]:
    begins = saved_offsets(header.metadata)
    opened = f"safetensors.safe_open({file.path!r}, 'pt')"
    for name, dtype, shape, offset, nbytes, problem in header.tensors:
        code = f"{opened}.get_tensor({name!r})"
        note = f"a chunk of a tensor, from {begins[name]} on" if any(begins.get(name, ())) else ""
        source = FileSource(shape, dtype, file, offset)
        yield weight_in(source, name, code, nbytes=nbytes, note=note, problem=problem)


def saved_offsets(metadata: dict[str, str]) -> dict[str, Shape]:
    """Return the first index of each chunk that a rank wrote for DCP."""
    try:
        told = json.loads(metadata.get(SHARDING_INFO, "{}"))
    except (ValueError, RecursionError):
        return {}
    found = {}
    for name, one in told.items() if isinstance(told, dict) else ():
        offsets = one.get("saved_offsets") if isinstance(one, dict) else None
        if isinstance(offsets, list) and all(type(n) is int and n >= 0 for n in offsets):
            found[name] = tuple(offsets)
    return found


def read_header(file: ListedFile, start: int = 0) -> Header:
    """Return the header of `file` at byte `start`.

    CheckpointError if it is malformed, or does not fit the size of the file.
    """
    try:
        return _header(file, start)
    except CheckpointError as error:
        raise CheckpointError(f"{file.path!r} is not a valid safetensors file: {error}") from None


def _header(file: ListedFile, start: int) -> Header:
    nbytes = file.nbytes - start
    if nbytes < _LENGTH_NBYTES:
        raise CheckpointError(f"it has {counted(nbytes, 'byte')}, and a header begins with {_LENGTH_NBYTES}")
    with file.opened() as there:
        length = int.from_bytes(there.read(start, _LENGTH_NBYTES).tobytes(), "little")
        if length > MAX_HEADER_NBYTES:
            raise CheckpointError(f"the header says {length:,} bytes, more than the limit of {MAX_HEADER_NBYTES:,}")
        if length > nbytes - _LENGTH_NBYTES:
            raise CheckpointError(f"the header says {length:,} bytes, only {nbytes - _LENGTH_NBYTES:,} follow")
        text = there.read(start + _LENGTH_NBYTES, length).tobytes()
    told = _parsed(text)
    metadata = told.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError("__metadata__ is not a mapping from text to text")
    first = start + _LENGTH_NBYTES + length
    return Header(_placed([_tensor(name, facts) for name, facts in told.items()], first, file.nbytes - first), metadata)


def _parsed(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        raise CheckpointError("its header does not begin with a brace")
    try:
        told = json.loads(text.decode("utf-8"), object_pairs_hook=_without_twins, parse_constant=_refuse_constant)
    except CheckpointError:
        raise
    except UnicodeDecodeError:
        raise CheckpointError("its header is not UTF-8") from None
    except RecursionError:
        raise CheckpointError("its header is nested too deeply") from None
    except ValueError as error:
        at = f" at character {error.pos:,}" if isinstance(error, json.JSONDecodeError) else ""
        raise CheckpointError(f"its header is not JSON{at}") from None
    if not isinstance(told, dict):
        raise CheckpointError("its header is not a mapping from names to tensors")
    return told


def _without_twins(pairs: list[tuple[str, Any]]) -> Any:
    """Return a JSON object, or the facts of a tensor; raise CheckpointError for a repeated key.

    The garbage collector would take as long for a million lists and mappings as all else together.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        twin = next(key for key in found if times[key] > 1)
        raise CheckpointError(f"its header has the key {shown_name(twin)} twice")
    if found.keys() >= _FACTS:
        dtype, shape, offsets = found["dtype"], found["shape"], found["data_offsets"]
        if type(dtype) is str and type(shape) is list and type(offsets) is list:
            return dtype, tuple(shape), tuple(offsets)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise CheckpointError(f"its header has {name} where a number should be")


def _tensor(name: str, facts: Any) -> _Told:
    if type(facts) is not tuple:
        raise CheckpointError(f"{shown_name(name)} has no dtype, shape and data_offsets")
    dtype, shape, offsets = facts
    if len(offsets) != 2 or not _are_sizes((*offsets, *shape)):
        raise CheckpointError(f"{shown_name(name)} has a shape or offsets of a wrong type")
    return offsets[0], offsets[1], name, dtype, shape


def _are_sizes(values: tuple[Any, ...]) -> bool:
    for value in values:  # noqa: SIM110, as `all` of a generator takes twice as long
        if type(value) is not int or not 0 <= value <= _MAX_SIZE:
            return False
    return True


def _placed(told: Iterable[_Told], first: int, nbytes: int) -> list[StoredTensor]:
    """Return the tensors by offset; raise unless they cover the data exactly."""
    end, placed = 0, []
    for one in sorted(told):
        start, stop, name, *_ = one
        if start != end or stop < start:
            said = "overlap with those before" if start < end else "leave a hole before"
            raise CheckpointError(f"the bytes of {shown_name(name)}, {start:,} to {stop:,}, {said}")
        end = stop
        placed.append(_checked(one, first))
    if end > nbytes:
        raise CheckpointError(f"it needs {first + end:,} bytes, and has {first + nbytes:,}")
    if end < nbytes:
        raise CheckpointError(f"{counted(nbytes - end, 'byte')} at its end can belong to no tensor")
    return placed


def _checked(one: _Told, first: int) -> StoredTensor:
    """Return the tensor; its bytes are as many as its shape and dtype need, where the dtype is known."""
    start, stop, name, told, shape = one
    nbytes, start = stop - start, first + start
    if told not in DTYPES:
        problem = f"its dtype {shown_name(told)} is not known"
        return StoredTensor(name, told, shape, start, nbytes, problem)
    dtype, bits = DTYPES[told]
    numel = 1
    for size in shape:
        numel *= size
        if numel > _MAX_SIZE:
            raise CheckpointError(f"the shape of {shown_name(name)} is too large for any memory")
    if numel * bits != 8 * nbytes:
        said = f"{shown_name(name)} of shape {cut(str(shape), MAX_SHOWN)} and dtype {told}"
        if numel * bits % 8:
            raise CheckpointError(f"{said} ends inside a byte: {numel:,} × {bits} bits")
        raise CheckpointError(f"{said} needs {numel * bits // 8:,} bytes, and has {nbytes:,}")
    if dtype == "float4_e2m1fn_x2":
        if not shape or shape[-1] % 2:
            problem = "its last dimension is odd, and two values share a byte"
            return StoredTensor(name, told, shape, start, nbytes, problem)
        # The file counts values, and torch counts bytes.
        shape = (*shape[:-1], shape[-1] // 2)
    problem = "" if dtype else f"torch has no dtype for {told}"
    return StoredTensor(name, dtype or told, shape, start, nbytes, problem)

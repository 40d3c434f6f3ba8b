"""The header of a safetensors file: what the library refuses by structure is refused here, and nothing else is read.

One exception: a dtype that is not known hides only its own tensor, if all offsets are sound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted
from tensornp.errors import CheckpointError
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.safetensors.strict_json import MAX_DEPTH, MalformedError, depth_of, parsed
from tensornp.models.names.quoted import MAX_SHOWN, cut, shown_name

MAX_HEADER_NBYTES = 100_000_000
"""What the library takes at most."""
_LENGTH_NBYTES = 8
_MAX_SIZE = 2**64 - 1
_FACTS = ("dtype", "shape", "data_offsets")
_NAMED = set(_FACTS)

DTYPES: dict[str, tuple[str, int]] = {
    "BOOL": ("bool", 8),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "U16": ("uint16", 16),
    "I16": ("int16", 16),
    "U32": ("uint32", 32),
    "I32": ("int32", 32),
    "U64": ("uint64", 64),
    "I64": ("int64", 64),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "F32": ("float32", 32),
    "F64": ("float64", 64),
    "C64": ("complex64", 64),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "F8_E8M0": ("float8_e8m0fnu", 8),
    "F4": ("float4_e2m1fn_x2", 4),
    "F6_E2M3": ("", 6),
    "F6_E3M2": ("", 6),
}
"""Of each dtype of the format, what torch calls it (empty where torch has none), and the bits of a value."""


class StoredTensor(NamedTuple):
    """A tensor of a file: `offset` and `nbytes` say where in it, and `problem` why its values are not read."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    problem: str = ""


class Header(NamedTuple):
    """What the header says: the tensors in the order of the file, and what it says of itself."""

    tensors: list[StoredTensor]
    metadata: dict[str, str]


def read_header(file: ListedFile, start: int = 0) -> Header:
    """Return what the header of `file` says, which is at its byte `start`, and read no value.

    Raises
    ------
    CheckpointError
        If the header is malformed, or does not fit the size of the file.
    ChangedFileError
        If the file changes meanwhile.
    """
    try:
        return _header(file, start)
    except MalformedError as error:
        raise CheckpointError(f"{file.path!r} is not a valid safetensors file: {error}") from None


def _header(file: ListedFile, start: int) -> Header:
    nbytes = file.nbytes - start
    if nbytes < _LENGTH_NBYTES:
        raise MalformedError(f"it has {counted(nbytes, 'byte')}, and a header begins with {_LENGTH_NBYTES}")
    with file.opened() as there:
        length = int.from_bytes(there.read(start, _LENGTH_NBYTES).tobytes(), "little")
        if length > MAX_HEADER_NBYTES:
            raise MalformedError(f"the header says {length:,} bytes, more than the limit of {MAX_HEADER_NBYTES:,}")
        if length > nbytes - _LENGTH_NBYTES:
            raise MalformedError(f"the header says {length:,} bytes, only {nbytes - _LENGTH_NBYTES:,} follow")
        text = there.read(start + _LENGTH_NBYTES, length).tobytes()
    told = parsed(text, _compact)
    if not isinstance(told, dict):
        raise MalformedError("the header is not a mapping from names to tensors")
    metadata = told.pop("__metadata__", None)
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise MalformedError("__metadata__ is not a mapping from text to text")
    first = start + _LENGTH_NBYTES + length
    return Header(_placed([_tensor(name, facts) for name, facts in told.items()], first, file.nbytes - first), metadata)


_Told = tuple[int, int, str, str, tuple[int, ...]]
"""What the header says of a tensor, before it is known to be true: where it begins and ends, name, dtype and shape."""


def _compact(facts: dict[str, Any]) -> Any:
    """Return the facts of a tensor as a tuple, as they stand there.

    A million lists and mappings would have the garbage collector take as long as all else together.
    """
    if len(facts) != len(_FACTS) or not facts.keys() >= _NAMED:
        return facts
    dtype, shape, offsets = facts["dtype"], facts["shape"], facts["data_offsets"]
    is_list = type(dtype) is str and type(shape) is list and type(offsets) is list
    return (dtype, tuple(shape), tuple(offsets)) if is_list else facts


def _tensor(name: str, facts: Any) -> _Told:
    if isinstance(facts, dict) and facts.keys() >= _NAMED:
        if depth_of(facts) > MAX_DEPTH - 1:
            raise MalformedError("its header is nested too deeply")
        facts = [facts[key] for key in _FACTS]
    # The library takes them without their names too.
    if not isinstance(facts, (list, tuple)) or len(facts) != len(_FACTS):
        raise MalformedError(f"{shown_name(name)} has no dtype, shape and data_offsets")
    dtype, shape, offsets = facts
    is_list = isinstance(shape, (list, tuple)) and isinstance(offsets, (list, tuple)) and len(offsets) == 2
    if not isinstance(dtype, str) or not is_list or not _are_sizes((*offsets, *shape)):
        raise MalformedError(f"{shown_name(name)} has a dtype, a shape or offsets of a wrong type")
    return offsets[0], offsets[1], name, dtype, tuple(shape)


def _are_sizes(values: tuple[Any, ...]) -> bool:
    for value in values:  # noqa: SIM110, as `all` of a generator takes twice as long
        if type(value) is not int or not 0 <= value <= _MAX_SIZE:
            return False
    return True


def _placed(told: Iterable[_Told], first: int, nbytes: int) -> list[StoredTensor]:
    """Return the tensors in the order of the file: they cover its data without overlaps, holes and rest."""
    end, placed = 0, []
    for one in sorted(told):
        start, stop, name, *_ = one
        if start != end or stop < start:
            said = "overlap with those before" if start < end else "leave a hole before"
            raise MalformedError(f"the bytes of {shown_name(name)}, {start:,} to {stop:,}, {said}")
        end = stop
        placed.append(_checked(one, first))
    if end > nbytes:
        raise MalformedError(f"it needs {first + end:,} bytes, and has {first + nbytes:,}")
    if end < nbytes:
        raise MalformedError(f"{counted(nbytes - end, 'byte')} at its end can belong to no tensor")
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
            raise MalformedError(f"the shape of {shown_name(name)} is too large for any memory")
    if numel * bits != 8 * nbytes:
        said = f"{shown_name(name)} of shape {cut(str(shape), MAX_SHOWN)} and dtype {told}"
        if numel * bits % 8:
            raise MalformedError(f"{said} ends inside a byte: {numel:,} × {bits} bits")
        raise MalformedError(f"{said} needs {numel * bits // 8:,} bytes, and has {nbytes:,}")
    if dtype == "float4_e2m1fn_x2":
        if not shape or shape[-1] % 2:
            problem = "its last dimension is odd, and two values share a byte"
            return StoredTensor(name, told, shape, start, nbytes, problem)
        # The file counts values, and torch counts bytes.
        shape = (*shape[:-1], shape[-1] // 2)
    problem = "" if dtype else f"torch has no dtype for {told}"
    return StoredTensor(name, dtype or told, shape, start, nbytes, problem)

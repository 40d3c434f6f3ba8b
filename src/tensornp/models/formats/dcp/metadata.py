"""What `.metadata` of `torch.distributed.checkpoint` says: the tensors, their chunks, and the item of each.

It is a pickle, which torch runs; here it is seen through, and what is none of torch's own records is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from tensornp.core.tensor.paths import is_plain_value
from tensornp.errors import CheckpointError
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.torch.archive import looked_through
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.contents import MAX_ENTRIES, shown_key
from tensornp.models.pickles.look_through import MAX_NBYTES
from tensornp.models.pickles.records import Call, Global
from tensornp.models.pickles.tensors import KNOWN_IMPORTS, sizes_of
from tensornp.models.pickles.wanted import wanted_of

Shape = tuple[int, ...]
_METADATA = "torch.distributed.checkpoint.metadata"
_FILES = "torch.distributed.checkpoint.filesystem"
_SHARDED = "torch.distributed._shard.sharded_tensor.metadata"
_PATHS = "Path PosixPath WindowsPath PurePath PurePosixPath PureWindowsPath".split()
_RECORDS = (
    "Metadata TensorStorageMetadata BytesStorageMetadata ChunkStorageMetadata TensorProperties MetadataIndex "
    "StorageMeta _MEM_FORMAT_ENCODING"
).split()
MAX_CHUNKS = 2_000_000
"""Chunks of all tensors that are listed: of a model of 1,000 ranks and its optimizer there are 1.2 million."""
_MAX_MADE = 30_000_000
"""Records of some 100 bytes that a file may make: 20 for each chunk."""
_MAX_KEYS = 100
"""Keys that lead to a value."""
_OTHER_DTYPES = (
    "quint8 qint8 qint32 quint4x2 quint2x4 bits8 bits16 bits1x8 bits2x4 bits4x2 "
    "int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7"
).split()
"""Those that are named, and not read."""
_KNOWN = KNOWN_IMPORTS | frozenset(
    [(_METADATA, name) for name in _RECORDS]
    + [(_FILES, "_StorageInfo"), (_SHARDED, "TensorProperties"), (_SHARDED, "MEM_FORMAT_ENCODING")]
    + [(module, name) for module in ("pathlib", "pathlib._local") for name in _PATHS]
    + [("torch.serialization", "_get_layout")]
    + [("torch", name) for name in _OTHER_DTYPES]
)
"""What torch 2.4 to 2.13 writes; anything else, the file wants to import besides."""


class Item(NamedTuple):
    """Where the bytes of a chunk, or of another value, lie: in which file of the folder, and as what."""

    place: Any
    offset: int
    nbytes: int
    transforms: tuple[str, ...]


class ToldChunk(NamedTuple):
    """A box of a tensor, and its item; None where no item is told."""

    offsets: Shape
    sizes: Shape
    item: Item | None


class ToldTensor(NamedTuple):
    """A tensor; `problem` says why it is not read, and `note` what is unusual."""

    dtype: str
    shape: Shape
    chunks: list[ToldChunk]
    problem: str = ""
    note: str = ""


class Told(NamedTuple):
    """What `.metadata` says: tensors and other values by name, what it says of itself, and what is wrong with it.

    `paths` are the keys that torch has joined to some of the names.
    """

    tensors: dict[str, ToldTensor]
    values: dict[str, Item | None]
    said: dict[str, Any]
    problems: list[str]
    wanted: tuple[str, ...]
    paths: dict[str, tuple[Any, ...]]

    def places(self) -> Iterator[Any]:
        """Yield in which file each item lies."""
        items = chain(self.values.values(), (chunk.item for one in self.tensors.values() for chunk in one.chunks))
        return (one.place for one in items if one is not None)


def read_dcp_metadata(file: ListedFile) -> Told:
    """Return what the file says; CheckpointError if it is no pickle of a `Metadata`."""
    if file.nbytes > MAX_NBYTES:
        raise CheckpointError(f"{file.path!r} has {file.nbytes:,} bytes, and {MAX_NBYTES:,} are read")
    found = looked_through(repr(file.path), file.read(0, file.nbytes), _MAX_MADE)
    fields = _fields(found.root, "Metadata")
    listed = fields.get("state_dict_metadata") if fields is not None else None
    if fields is None or type(listed) is not dict:
        raise CheckpointError(f"{file.path!r} holds no metadata of torch.distributed.checkpoint")
    imports = [one for one in wanted_of(found) if tuple(one.wanted) not in _KNOWN]
    problems: list[str] = [*imports]
    items = _items(fields.get("storage_data"))
    tensors: dict[str, ToldTensor] = {}
    values: dict[str, Item | None] = {}
    num_chunks = 0
    for key, one in listed.items():
        name = shown_key(key)
        if len(tensors) + len(values) >= MAX_ENTRIES:
            problems.append(NotListed(f"it has more than {MAX_ENTRIES:,} values, and the others are not listed"))
            break
        if (of_tensor := _fields(one, "TensorStorageMetadata")) is not None:
            tensors[name] = _tensor(key, of_tensor, items, MAX_CHUNKS - num_chunks)
            num_chunks += len(tensors[name].chunks)
        elif _fields(one, "BytesStorageMetadata") is not None:
            values[name] = items.get((key, None))
        else:
            problems.append(NotListed(f"{shown_name(name)} is neither a tensor nor bytes, and is not listed"))
    wanted = tuple(str(one.wanted) for one in imports)
    return Told(tensors, values, _said(fields), problems, wanted, _paths(fields.get("planner_data")))


def _paths(told: Any) -> dict[str, tuple[Any, ...]]:
    """Return the keys that led to each value, by the name that they have made, in the order of what was saved."""
    pairs = told.items() if type(told) is dict else ()
    return {name: path for name, path in pairs if type(name) is str and type(path) is tuple and len(path) <= _MAX_KEYS}


def _fields(value: Any, record: str) -> dict[Any, Any] | None:
    """Return the fields of one of torch's records, or None for anything else."""
    if type(value) is not Call or not _is_known(value.func, record):
        return None
    state = value.state
    return state if type(state) is dict else {}


def _items(storage: Any) -> dict[Any, Item]:
    """Return the item of each chunk, by the name of its tensor and its offsets; by None that of another value."""
    found: dict[Any, Item] = {}
    for key, one in storage.items() if type(storage) is dict else ():
        index, info = _fields(key, "MetadataIndex"), _fields(one, "_StorageInfo")
        if index is None or info is None or type(index.get("fqn")) is not str:
            continue
        transforms = info.get("transform_descriptors") or ()
        offset, nbytes = info.get("offset"), info.get("length")
        is_told = type(transforms) in (list, tuple) and all(type(one) is str for one in transforms)
        if type(offset) is int and type(nbytes) is int and is_told:
            offsets = index.get("offset")
            at = sizes_of(offsets) if offsets is not None else None
            found[index["fqn"], at] = Item(info.get("relative_path"), offset, nbytes, tuple(transforms))
    return found


def _tensor(name: Any, fields: dict[Any, Any], items: dict[Any, Item], max_chunks: int) -> ToldTensor:
    shape, dtype = sizes_of(fields.get("size")), _dtype(fields.get("properties"))
    if shape is None:
        return ToldTensor(dtype, (), [], "it has no shape of up to 1,000 dimensions")
    if not dtype:
        return ToldTensor("", shape, [], "its dtype is not told")
    chunks: list[ToldChunk] = []
    told = fields.get("chunks")
    if type(told) is list and len(told) > max_chunks:
        # A pickle can have one list stand in many places.
        return ToldTensor(dtype, shape, [], f"with its chunks there are more than {MAX_CHUNKS:,}")
    for one in told if type(told) is list else ():
        chunk = _fields(one, "ChunkStorageMetadata") or {}
        offsets, sizes = sizes_of(chunk.get("offsets")), sizes_of(chunk.get("sizes"))
        if offsets is None or sizes is None:
            return ToldTensor(dtype, shape, [], "the place of a chunk is not told")
        # Equal tuples are kept once.
        sizes = shape if sizes == shape else sizes
        chunks.append(ToldChunk(offsets, sizes, items.get((name, offsets))))
    return ToldTensor(dtype, shape, chunks)


def _dtype(properties: Any) -> str:
    """Return the dtype, which stands first among the properties of a tensor."""
    known = type(properties) is Call and _is_known(properties.func, "TensorProperties")
    state = properties.state if known else None
    first = state[0] if type(state) is tuple and state else state.get("dtype") if type(state) is dict else None
    return first.name if type(first) is Global and first.module == "torch" else ""


def _is_known(func: Any, record: str) -> bool:
    return type(func) is Global and func.name == record and tuple(func) in _KNOWN


def _said(fields: dict[Any, Any]) -> dict[str, Any]:
    """Return what the file says of itself: plain values alone."""
    about = {"version": fields.get("version"), **(_fields(fields.get("storage_meta"), "StorageMeta") or {})}
    shown = ("version", "save_id")
    return {key: about[key] for key in shown if about.get(key) is not None and is_plain_value(about[key])}

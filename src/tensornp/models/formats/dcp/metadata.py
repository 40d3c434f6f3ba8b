"""Read `.metadata` of `torch.distributed.checkpoint`: tensors, chunks and items.

It is a pickle, which is not run; an import that torch does not write is a problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from tensornp.core.tensor.paths import is_plain_value
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.repeated import NotListed
from tensornp.models.files.source_file import ListedFile
from tensornp.models.names.quoted import shown_name
from tensornp.models.optimizers import GROUPS, NAMES, PARAMS, SavedOptimizer, optimizers_in
from tensornp.models.pickles.leaves import MAX_ENTRIES, shown_key
from tensornp.models.pickles.reader import Import, Opaque
from tensornp.models.pickles.torch_pickle import class_of, is_size, read_torch_pickle, sizes_of, torch_name
from tensornp.models.pickles.wanted import wanted_of

Shape = tuple[int, ...]
_MAX_NBYTES = 2**28
"""Bytes of the file: a model of 1,000 ranks and its optimizer have 1.2 million chunks."""
_MAX_CHUNKS = 2_000_000
"""Chunks of all tensors together; a pickle can have one list in many places."""
_MAX_KEYS = 100
"""Keys that lead to a value."""
_MAX_GROUPS = 10_000
"""Groups of optimizers whose parameters are read."""
_A_TENSOR = object()
_RECORDS = (
    "Metadata TensorStorageMetadata BytesStorageMetadata ChunkStorageMetadata TensorProperties MetadataIndex "
    "StorageMeta _MEM_FORMAT_ENCODING"
).split()
_PATHS = "Path PosixPath WindowsPath PurePath PurePosixPath PureWindowsPath".split()
_KNOWN = frozenset(
    [Import("torch.distributed.checkpoint.metadata", name) for name in _RECORDS]
    + [Import("torch.distributed.checkpoint.filesystem", "_StorageInfo")]
    + [
        Import("torch.distributed._shard.sharded_tensor.metadata", name)
        for name in ("TensorProperties", "MEM_FORMAT_ENCODING")
    ]
    + [Import(module, name) for module in ("pathlib", "pathlib._local") for name in _PATHS]
)
"""Imports that torch 2.4 to 2.13 writes."""


class Item(NamedTuple):
    """The bytes of a chunk, or of another value, in a file of the folder."""

    place: Any
    offset: int
    nbytes: int
    transforms: tuple[str, ...]


class ToldChunk(NamedTuple):
    """A box of a tensor, and its item, if there is one."""

    offsets: Shape
    sizes: Shape
    item: Item | None


class ToldTensor(NamedTuple):
    """A tensor; `problem` says why it is not read."""

    dtype: str
    shape: Shape
    chunks: list[ToldChunk]
    problem: str = ""


class Told(NamedTuple):
    """The contents of `.metadata`: tensors and other values by name, its version, and problems.

    `paths` are the keys that torch has joined to some of the names.
    """

    tensors: dict[str, ToldTensor]
    values: dict[str, Item | None]
    said: dict[str, Any]
    problems: list[str]
    wanted: tuple[str, ...]
    paths: dict[str, tuple[Any, ...]]

    def path_of(self, name: str) -> tuple[Any, ...]:
        """Return the keys that lead to a value."""
        path = self.paths.get(name, ())
        return path if path and all(type(key) is str or is_size(key) for key in path) else (name,)


def read_dcp_metadata(file: ListedFile) -> Told:
    """Return the contents of the file; CheckpointError if it is not a pickle of a `Metadata`."""
    if file.nbytes > _MAX_NBYTES:
        raise CheckpointError(f"{file.path!r} has {file.nbytes:,} bytes, and {_MAX_NBYTES:,} are read")
    found = read_torch_pickle(file.read(0, file.nbytes), repr(file.path), _MAX_NBYTES)
    fields = _fields(found.root, "Metadata")
    listed = fields.get("state_dict_metadata")
    if type(listed) is not dict:
        raise CheckpointError(f"{file.path!r} holds no metadata of torch.distributed.checkpoint")
    imports = [one for one in wanted_of(found) if one.wanted not in _KNOWN]
    problems: list[str] = [*imports]
    items = _items(fields.get("storage_data"))
    tensors: dict[str, ToldTensor] = {}
    values: dict[str, Item | None] = {}
    num_chunks = 0
    for key, one in islice(listed.items(), MAX_ENTRIES):
        name = shown_key(key)
        if _is_a(one, "TensorStorageMetadata"):
            tensors[name] = _tensor(key, _fields(one), items, _MAX_CHUNKS - num_chunks)
            num_chunks += len(tensors[name].chunks)
        elif _is_a(one, "BytesStorageMetadata"):
            values[name] = items.get((key, None))
        else:
            problems.append(NotListed(f"{shown_name(name)} is neither a tensor nor bytes, and is not listed"))
    if len(listed) > MAX_ENTRIES:
        problems.append(NotListed(f"it has more than {MAX_ENTRIES:,} values, and the others are not listed"))
    paths = fields.get("planner_data")
    pairs = paths.items() if type(paths) is dict else ()
    paths = {name: path for name, path in pairs if type(name) is str and type(path) is tuple and len(path) <= _MAX_KEYS}
    about = {"version": fields.get("version"), **_fields(fields.get("storage_meta"), "StorageMeta")}
    said = {key: about[key] for key in ("version", "save_id") if about.get(key) and is_plain_value(about[key])}
    return Told(tensors, values, said, problems, tuple(str(one.wanted) for one in imports), paths)


def _is_a(value: Any, record: str) -> bool:
    """Return whether an object is one of torch's records."""
    return type(value) is Opaque and value.what in _KNOWN and class_of(value)[1] == record


def _fields(value: Any, record: str = "") -> dict[Any, Any]:
    """Return the fields of a record, or an empty mapping."""
    is_record = not record or _is_a(value, record)
    return value.state if is_record and type(value.state) is dict else {}


def _items(storage: Any) -> dict[Any, Item]:
    """Return the item of each chunk by name and offsets; of a value by name and None."""
    found: dict[Any, Item] = {}
    for key, one in storage.items() if type(storage) is dict else ():
        index, info = _fields(key, "MetadataIndex"), _fields(one, "_StorageInfo")
        transforms = info.get("transform_descriptors") or ()
        offset, nbytes = info.get("offset"), info.get("length")
        is_told = type(transforms) in (list, tuple) and all(type(one) is str for one in transforms)
        if type(index.get("fqn")) is str and type(offset) is int and type(nbytes) is int and is_told:
            at = sizes_of(index.get("offset"))
            found[index["fqn"], at] = Item(info.get("relative_path"), offset, nbytes, tuple(transforms))
    return found


def _tensor(name: Any, fields: dict[Any, Any], items: dict[Any, Item], max_chunks: int) -> ToldTensor:
    shape, dtype = sizes_of(fields.get("size")), _dtype(fields.get("properties"))
    if shape is None:
        return ToldTensor(dtype, (), [], "it has no shape of up to 1,000 dimensions")
    if not dtype:
        return ToldTensor("", shape, [], "its dtype is not told")
    told = fields.get("chunks")
    if type(told) is list and len(told) > max_chunks:
        return ToldTensor(dtype, shape, [], f"with its chunks there are more than {_MAX_CHUNKS:,}")
    chunks: list[ToldChunk] = []
    for one in told if type(told) is list else ():
        chunk = _fields(one, "ChunkStorageMetadata")
        offsets, sizes = sizes_of(chunk.get("offsets")), sizes_of(chunk.get("sizes"))
        if offsets is None or sizes is None:
            return ToldTensor(dtype, shape, [], "the place of a chunk is not told")
        chunks.append(ToldChunk(offsets, sizes, items.get((name, offsets))))
    return ToldTensor(dtype, shape, chunks)


def _dtype(properties: Any) -> str:
    """Return the dtype, which is the first of the properties of a tensor."""
    state = properties.state if _is_a(properties, "TensorProperties") else None
    if type(state) is dict:
        return torch_name(state.get("dtype"))
    return torch_name(state[0]) if type(state) is tuple and state else ""


def optimizers_of(
    told: Told, entries: list[WeightEntry], values: Mapping[str, Any]
) -> tuple[list[SavedOptimizer], list[WeightEntry]]:
    """Return the optimizers in the dictionaries of a checkpoint, and the weights.

    Of `values`, only the parameters of groups are read.
    """
    if not any(GROUPS in name for name in told.values):
        # Groups have more than tensors.
        return [], entries
    # Before torch 2.4, the groups of an optimizer were one value.
    of_groups = (name for name in told.values if told.path_of(name)[-1] in (GROUPS, PARAMS, NAMES))
    read = {name: values[name] for name in islice(of_groups, 2 * _MAX_GROUPS)}
    # In the order of what was saved; with several ranks, the first may have written the last value.
    every = dict.fromkeys(name for name in told.paths if name in told.tensors or name in told.values)
    every |= dict.fromkeys((*told.tensors, *told.values))
    root: dict[Any, Any] = {}
    for name in every:
        *above, last = told.path_of(name)
        place: Any = root
        for key in above:
            place = place.setdefault(key, {}) if type(place) is dict else None
        if type(place) is dict:
            place.setdefault(last, read.get(name) if name in told.values else _A_TENSOR)
    return optimizers_in(root, (told.path_of(one.name) for one in entries), entries)

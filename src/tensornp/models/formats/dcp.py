"""Folders of `torch.distributed.checkpoint`: one entry for each tensor.

Items lie in `.distcp` files, and `.metadata`, a pickle that is not run, says where. No item of a tensor is read before
its values are asked for. Chunks in safetensors files, and compressed ones, are listed and not read.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Any, NamedTuple

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.paths import is_plain_value
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import NotListed, WeightEntry
from tensornp.models.entries.in_file import why_no_array
from tensornp.models.files.address import Place, why_outside
from tensornp.models.files.source_file import ListedFile, overlapping
from tensornp.models.formats.byte_values import ByteValue, ByteValues
from tensornp.models.formats.chunks import ChunkSource, StoredChunk, why_not_whole
from tensornp.models.formats.contents import Contents, problems_of
from tensornp.models.formats.table import METADATA, listed
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, cut, shown_name
from tensornp.models.optimizers import GROUPS, NAMES, PARAMS, SavedOptimizer, optimizers_in
from tensornp.models.pickles.leaves import MAX_ENTRIES, shown_key
from tensornp.models.pickles.reader import Import, Opaque
from tensornp.models.pickles.torch_pickle import class_of, is_size, read_torch_pickle, sizes_of, torch_name
from tensornp.models.pickles.wanted import wanted_of
from tensornp.models.reading.take import Shape

_MAX_NBYTES = 2**28
"""Bytes of `.metadata`: a model of 1,000 ranks and its optimizer have 1.2 million chunks."""
_MAX_CHUNKS = 2**16
"""Chunks of a tensor; a pickle can have one list in many places."""
_MAX_ALL_CHUNKS = 2_000_000
_MAX_GROUPS = 10_000
"""Groups of optimizers whose parameters are read."""
_A_TENSOR = object()
_RECORDS = {
    "torch.distributed.checkpoint.metadata": (
        "Metadata TensorStorageMetadata BytesStorageMetadata ChunkStorageMetadata TensorProperties MetadataIndex "
        "StorageMeta _MEM_FORMAT_ENCODING"
    ),
    "torch.distributed.checkpoint.filesystem": "_StorageInfo",
    "torch.distributed._shard.sharded_tensor.metadata": "TensorProperties MEM_FORMAT_ENCODING",
    "pathlib": "Path PosixPath WindowsPath PurePath PurePosixPath PureWindowsPath",
    "pathlib._local": "Path PosixPath WindowsPath PurePath PurePosixPath PureWindowsPath",
}
_KNOWN = frozenset(Import(module, name) for module, names in _RECORDS.items() for name in names.split())
"""Imports that torch 2.4 to 2.13 writes."""


class Item(NamedTuple):
    """The bytes of a chunk, or of another value, in a file of the folder."""

    place: Any
    offset: int
    nbytes: int
    is_transformed: bool


def open_dcp(folder: Place) -> Contents:
    """Return the contents of a checkpoint; CheckpointError for another pickle."""
    file = listed(folder / METADATA)
    if file.nbytes > _MAX_NBYTES:
        raise CheckpointError(f"{file.path!r} has {file.nbytes:,} bytes, and {_MAX_NBYTES:,} are read")
    found = read_torch_pickle(file.read(0, file.nbytes), repr(file.path), _MAX_NBYTES)
    told = _fields(found.root, "Metadata")
    every = told.get("state_dict_metadata")
    if type(every) is not dict:
        raise CheckpointError(f"{file.path!r} holds no metadata of torch.distributed.checkpoint")
    wanted = [one for one in wanted_of(found) if one.wanted not in _KNOWN]
    problems: list[str] = [*wanted]
    items, files, left = _items(told.get("storage_data")), _Files(folder), _MAX_ALL_CHUNKS
    entries: list[WeightEntry] = []
    stored: dict[str, ByteValue] = {}
    for key, one in islice(every.items(), MAX_ENTRIES):
        name = shown_key(key)
        if _is_a(one, "TensorStorageMetadata"):
            entry, num = _tensor(files, name, key, _fields(one), items, left)
            entries.append(entry._with_(wanted_imports=tuple(str(one.wanted) for one in wanted)) if wanted else entry)
            left -= num
        elif _is_a(one, "BytesStorageMetadata"):
            place = files.of_item(items.get((key, None)))
            stored[name] = ByteValue(None, 0, 0, place) if isinstance(place, str) else ByteValue(*place)
        else:
            problems.append(NotListed(f"{shown_name(name)} is neither a tensor nor bytes, and is not listed"))
    if len(every) > MAX_ENTRIES:
        problems.append(NotListed(f"it has more than {MAX_ENTRIES:,} values, and the others are not listed"))
    about = {"version": told.get("version"), **_fields(told.get("storage_meta"), "StorageMeta")}
    said = {key: about[key] for key in ("version", "save_id") if about.get(key) and is_plain_value(about[key])}
    values = ByteValues(said, stored)
    optimizers, entries = _optimizers_of(told.get("planner_data"), _without_overlaps(entries, stored), values)
    problems += values.problems({one.problem for one in entries})
    return Contents(entries, values, [*problems, *problems_of(entries)], optimizers)


def _is_a(value: Any, record: str) -> bool:
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
        offset: Any = info.get("offset")
        nbytes: Any = info.get("length")
        if type(index.get("fqn")) is str and is_size(offset) and is_size(nbytes):
            at = sizes_of(index.get("offset"))
            is_transformed = bool(info.get("transform_descriptors"))
            found[index["fqn"], at] = Item(info.get("relative_path"), offset, nbytes, is_transformed)
    return found


class _Files:
    """The files of a folder that hold items."""

    def __init__(self, folder: Place) -> None:
        self.folder = folder
        self._found: dict[str, ListedFile | str] = {}

    def of_item(self, item: Item | None) -> tuple[ListedFile, int, int] | str:
        """Return file, offset and size of an item, or the reason why it is not read."""
        if item is None:
            return "where it lies is not told"
        name = item.place
        if type(name) is not str or name not in self._found:
            if why := why_outside(name):
                return why
            try:
                # Of a file elsewhere, a byte is asked for.
                self._found[name] = listed(self.folder / name, 1)
            except CheckpointError as error:
                self._found[name] = f"its file is not read: {cut(str(error), MAX_TOLD)}"
        file = self._found[name]
        if isinstance(file, str):
            return file
        if item.offset + item.nbytes > file.nbytes:
            return f"its item at byte {cut(f'{item.offset:,}', MAX_SHOWN)} lies outside of {shown_name(name)}"
        if item.is_transformed:
            return "it is transformed, such as compressed, which is not read"
        return file, item.offset, item.nbytes


def _tensor(
    files: _Files, name: str, key: Any, fields: dict[Any, Any], items: dict[Any, Item], left: int
) -> tuple[WeightEntry, int]:
    """Return the entry of one tensor, which is read only if all of its chunks are there, and their number."""
    shape, dtype, told = sizes_of(fields.get("size")), _dtype(fields.get("properties")), fields.get("chunks")
    boxes: list[tuple[Shape, Shape]] = []
    problem = "" if dtype in KNOWN else f"its dtype {shown_name(dtype)} is not read"
    if type(told) is not list or len(told) > min(_MAX_CHUNKS, left) or shape is None:
        problem, told = f"its shape is not told, or it has more than {_MAX_CHUNKS:,} chunks", []
    for one in told:
        chunk = _fields(one, "ChunkStorageMetadata")
        offsets, sizes = sizes_of(chunk.get("offsets")), sizes_of(chunk.get("sizes"))
        if offsets is None or sizes is None:
            problem = "the place of a chunk is not told"
        else:
            boxes.append((offsets, sizes))
    shape = shape or ()
    problem = problem or why_not_whole(shape, boxes)
    chunks: list[StoredChunk] = []
    for offsets, sizes in boxes if dtype in KNOWN else ():
        place = files.of_item(items.get((key, offsets)))
        needed = math.prod(sizes) * stored_dtype(dtype).itemsize
        if isinstance(place, str):
            problem = problem or place
        elif place[2] <= needed:
            # A zip is longer than its tensor.
            problem = problem or f"its chunk at {offsets} is not an item of torch.save; it may be in safetensors files"
        else:
            chunks.append(StoredChunk(offsets, sizes, *place))
    nbytes = sum(math.prod(chunk.sizes) for chunk in chunks) * stored_dtype(dtype).itemsize if chunks else 0
    folder = str(files.folder)
    source, code = ChunkSource(shape, dtype, folder, tuple(chunks)), f"tnp.weights({folder!r})[{name!r}].to_numpy()"
    problem = problem or why_no_array(shape, dtype)
    return WeightEntry(name, "tensor", shape, dtype, nbytes, source, code, problem=problem), len(boxes)


def _dtype(properties: Any) -> str:
    state = properties.state if _is_a(properties, "TensorProperties") else None
    if type(state) is dict:
        return torch_name(state.get("dtype"))
    return torch_name(state[0]) if type(state) is tuple and state else ""


def _without_overlaps(entries: list[WeightEntry], values: dict[str, ByteValue]) -> list[WeightEntry]:
    """Return the weights; items that overlap give their owners a problem."""
    items = [(one, 0, one.file, one.offset, one.nbytes) for one in values.values()]
    chunks = [(at, one._source.chunks) for at, one in enumerate(entries) if isinstance(one._source, ChunkSource)]
    every: list[Any] = [*items, *((None, at, *chunk[2:]) for at, some in chunks for chunk in some)]
    spans: dict[str, dict[str, tuple[int, int]]] = {}
    for number, (_, _, file, offset, nbytes) in enumerate(every):
        if file is not None:
            spans.setdefault(file.path, {})[str(number)] = offset, nbytes
    for key in (key for of_file in spans.values() for key in overlapping(of_file)):
        value, at, _, offset, _ = every[int(key)]
        said = f"its item at byte {offset:,} overlaps another one"
        if value is not None:
            value.problem = value.problem or said
        else:
            entries[at] = entries[at]._with_(problem=entries[at].problem or said)
    return entries


def _optimizers_of(
    planned: Any, entries: list[WeightEntry], values: ByteValues
) -> tuple[list[SavedOptimizer], list[WeightEntry]]:
    """Return the optimizers and the weights; `planned` are the keys that torch joined to names."""
    named = {one.name: one for one in entries}
    if not any(GROUPS in name for name in values):
        # Groups have more than tensors.
        return [], entries
    paths: dict[str, tuple[Any, ...]] = {}
    for name, path in planned.items() if type(planned) is dict else ():
        is_path = type(path) is tuple and all(type(key) is str or is_size(key) for key in path)
        if (name in named or name in values) and path and is_path:
            paths[name] = path
    # In the order of what was saved; with several ranks, the first may have written the last value.
    every = {name: paths.get(name, (name,)) for name in (*paths, *named, *values)}
    # Before torch 2.4, the groups of an optimizer were one value.
    of_groups = (name for name in values if every[name][-1] in (GROUPS, PARAMS, NAMES))
    read = {name: values[name] for name in islice(of_groups, 2 * _MAX_GROUPS)}
    root: dict[Any, Any] = {}
    for name, (*above, last) in every.items():
        place: Any = root
        for key in above:
            place = place.setdefault(key, {}) if type(place) is dict else None
        if type(place) is dict:
            place.setdefault(last, _A_TENSOR if name in named else read.get(name))
    return optimizers_in(root, (every[one.name] for one in entries), entries)

"""Folders of `torch.distributed.checkpoint`: one entry for each tensor.

Items lie in `.distcp` files, and `.metadata`, a pickle that is not run, says where. No item of a tensor is read before
its values are asked for. Chunks in safetensors files, and compressed ones, are listed and not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tensornp.core.lowlevel.text import legible
from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.paths import is_plain_value
from tensornp.errors import CheckpointError, TensornpError
from tensornp.models.entries.entry import NotListed, WeightEntry
from tensornp.models.entries.in_file import why_no_array
from tensornp.models.entries.take import Shape
from tensornp.models.files.address import Place, why_outside
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.chunks import ChunkSource, StoredChunk, opened_item, why_not_whole
from tensornp.models.formats.contents import Contents, problems_of
from tensornp.models.formats.table import METADATA, listed
from tensornp.models.formats.torch_save import torch_zip_of
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, cut, shown_name
from tensornp.models.optimizers import GROUPS, NAMES, PARAMS, SavedOptimizer, optimizers_in
from tensornp.models.pickles.leaves import MAX_ENTRIES, NotBuilt, arrays_left_out, is_array, shown_key, words_of
from tensornp.models.pickles.reader import Opaque, PickledSet
from tensornp.models.pickles.torch_pickle import class_of, is_size, read_torch_pickle, sizes_of, torch_name
from tensornp.models.pickles.wanted import WantedImport, wanted_of

_MAX_NBYTES = 2**28
"""Bytes of `.metadata`: a model of 1,000 ranks and its optimizer have 1.2 million chunks."""
_MAX_CHUNKS = 2**16
_MAX_GROUPS = 10_000
"""Groups of optimizers whose parameters are read."""
_MAX_LOOKED_INTO = 100
"""Values that are read when a checkpoint is opened; others are read on request."""
_MAX_DEPTH = 20
_MAX_PARTS = 100_000
"""Parts of a value that are shown; a pickle can repeat its parts."""
_A_TENSOR = object()
_TENSOR, _BYTES = "TensorStorageMetadata", "BytesStorageMetadata"
_KNOWN = re.compile(
    r"torch\.distributed\.(checkpoint\.metadata|checkpoint\.filesystem|_shard\.sharded_tensor\.metadata)\."
    r"(Metadata|(Tensor|Bytes|Chunk)StorageMetadata|TensorProperties|MetadataIndex|StorageMeta|_StorageInfo"
    r"|_?MEM_FORMAT_ENCODING)|pathlib(\._local)?\.(Pure)?(Posix|Windows)?Path"
)
"""Imports that torch 2.4 to 2.13 writes."""


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
    problems: list[str] = [one for one in wanted_of(found) if not _KNOWN.fullmatch(str(one.wanted))]
    wanted = tuple(str(one.wanted) for one in problems if isinstance(one, WantedImport))
    items = _Items(folder, told.get("storage_data"))
    entries: list[WeightEntry] = []
    stored: dict[str, ByteValue] = {}
    for key, one in islice(every.items(), MAX_ENTRIES):
        name = shown_key(key)
        if class_of(one)[1] == _TENSOR:
            entries.append(_tensor(items, name, key, _fields(one, _TENSOR))._with_(wanted_imports=wanted))
        elif class_of(one)[1] == _BYTES:
            place = items.place(key, None)
            stored[name] = ByteValue(None, 0, 0, place) if isinstance(place, str) else ByteValue(*place)
        else:
            problems.append(NotListed(f"{shown_name(name)} is neither a tensor nor bytes, and is not listed"))
    if len(every) > MAX_ENTRIES:
        problems.append(NotListed(f"it has more than {MAX_ENTRIES:,} values, and the others are not listed"))
    about = {"version": told.get("version"), **_fields(told.get("storage_meta"), "StorageMeta")}
    said = {key: about[key] for key in ("version", "save_id") if about.get(key) and is_plain_value(about[key])}
    values = ByteValues(said, stored)
    optimizers, entries = _optimizers_of(told.get("planner_data"), entries, values)
    problems += values.problems({one.problem for one in entries})
    return Contents(entries, values, [*problems, *problems_of(entries)], optimizers)


def _fields(value: Any, record: str) -> dict[Any, Any]:
    """Return the fields of a record, or an empty mapping."""
    is_record = type(value) is Opaque and class_of(value)[1] == record
    return value.state if is_record and type(value.state) is dict else {}


class _Items:
    """The items of a checkpoint: each has a chunk, or another value, in a file of the folder."""

    def __init__(self, folder: Place, storage: Any) -> None:
        self.folder = folder
        self._files: dict[str, ListedFile | str] = {}
        self._found: dict[Any, dict[Any, Any]] = {}
        for key, one in storage.items() if type(storage) is dict else ():
            index, info = _fields(key, "MetadataIndex"), _fields(one, "_StorageInfo")
            if type(index.get("fqn")) is str and is_size(info.get("offset")) and is_size(info.get("length")):
                self._found[index["fqn"], sizes_of(index.get("offset"))] = info

    def place(self, key: Any, offsets: Shape | None) -> tuple[ListedFile, int, int] | str:
        """Return file, offset and size of an item, or the reason why it is not read."""
        item: Any = self._found.get((key, offsets))
        if item is None:
            return "where it lies is not told"
        name, offset, nbytes = item.get("relative_path"), item["offset"], item["length"]
        if why := why_outside(name):
            return why
        if name not in self._files:
            try:
                # Of a file elsewhere, a byte is asked for.
                self._files[name] = listed(self.folder / name, 1)
            except CheckpointError as error:
                self._files[name] = f"its file is not read: {cut(str(error), MAX_TOLD)}"
        file = self._files[name]
        if isinstance(file, str):
            return file
        if offset + nbytes > file.nbytes:
            return f"its item at byte {cut(f'{offset:,}', MAX_SHOWN)} lies outside of {shown_name(name)}"
        if item.get("transform_descriptors"):
            return "it is transformed, such as compressed, which is not read"
        return file, offset, nbytes


def _tensor(items: _Items, name: str, key: Any, fields: dict[Any, Any]) -> WeightEntry:
    """Return the entry of one tensor, which is read only if all of its chunks are there."""
    shape, dtype, told = sizes_of(fields.get("size")), _dtype(fields.get("properties")), fields.get("chunks")
    problem = "" if dtype in KNOWN else f"its dtype {shown_name(dtype)} is not read"
    if type(told) is not list or len(told) > _MAX_CHUNKS or shape is None:
        problem, told = f"its shape is not told, or it has more than {_MAX_CHUNKS:,} chunks", []
    shape = shape or ()
    fields_of_chunks = [_fields(one, "ChunkStorageMetadata") for one in told]
    boxes = [(sizes_of(one.get("offsets")) or (), sizes_of(one.get("sizes")) or ()) for one in fields_of_chunks]
    problem = problem or why_not_whole(shape, boxes)
    chunks: list[StoredChunk] = []
    for offsets, sizes in boxes if dtype in KNOWN else ():
        place = items.place(key, offsets)
        needed = math.prod(sizes) * stored_dtype(dtype).itemsize
        if isinstance(place, str):
            problem = problem or place
        elif place[2] <= needed:
            # A zip is longer than its tensor.
            problem = problem or f"its chunk at {offsets} is not an item of torch.save; it may be in safetensors files"
        else:
            chunks.append(StoredChunk(offsets, sizes, *place))
    nbytes = sum(math.prod(chunk.sizes) for chunk in chunks) * stored_dtype(dtype).itemsize if chunks else 0
    folder = str(items.folder)
    source, code = ChunkSource(shape, dtype, folder, tuple(chunks)), f"tnp.weights({folder!r})[{name!r}].to_numpy()"
    problem = problem or why_no_array(shape)
    return WeightEntry(name, "tensor", shape, dtype, nbytes, source, code, problem=problem)


def _dtype(properties: Any) -> str:
    state = properties.state if type(properties) is Opaque else None
    if type(state) is dict:
        return torch_name(state.get("dtype"))
    return torch_name(state[0]) if type(state) is tuple and state else ""


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


@dataclass(slots=True)
class ByteValue:
    """A value in a file; `look` notes its imports as `wanted` and the number of its NumPy arrays."""

    file: ListedFile | None
    offset: int
    nbytes: int
    problem: str = ""
    wanted: tuple[WantedImport, ...] = ()
    num_arrays: int = 0
    _left: int = _MAX_PARTS

    def look(self) -> Any:
        """Return the value, with a `NotBuilt` for each part that is not plain, or why it is not read."""
        if self.problem or self.file is None:
            return f"not read: {self.problem}"
        try:
            with opened_item(self.file, self.offset, self.nbytes) as item:
                found = torch_zip_of(item).found
        except TensornpError as error:
            return f"not read: {error}"
        self.wanted = tuple(wanted_of(found))
        return self._shown(found.root)

    def _shown(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            return NotBuilt("…")
        if is_plain_value(value):
            return value
        self.num_arrays += is_array(value)
        if words := words_of(value):
            return NotBuilt(words)
        if type(value) is dict:
            pairs = ((key if is_plain_value(key) else shown_key(key), one) for key, one in value.items())
            return {key: self._shown(one, depth + 1) for key, one in pairs}
        if type(value) in (list, tuple, PickledSet):
            parts = [self._shown(one, depth + 1) for one in value]
            return tuple(parts) if type(value) is tuple else parts
        inside = (value.args, value.items, value.appended, value.state) if type(value) is Opaque else ()
        name = legible(".".join(filter(None, class_of(value)))) or "an object"
        return NotBuilt(name, tuple(self._shown(one, depth + 1) for one in inside if one))


class ByteValues(Mapping[str, Any]):
    """A mapping from name to value that reads each value once, on request; some are known already."""

    def __init__(self, known: Mapping[str, Any], stored: Mapping[str, ByteValue]) -> None:
        self._stored = stored
        self._known = {name: value for name, value in known.items() if name not in stored}
        self._names = dict.fromkeys([*known, *stored])

    def __getitem__(self, name: str) -> Any:
        if name in self._stored and name not in self._known:
            self._known[name] = self._stored[name].look()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def beside(self) -> dict[str, Any]:
        """Return the values next to the weights, without those that describe the checkpoint."""
        return {name: self[name] for name in self._stored}

    def problems(self, known: Collection[str]) -> Iterator[str]:
        """Look into the first values, and yield their problems that are not `known`."""
        for name in islice(self._stored, _MAX_LOOKED_INTO):
            self[name]
            value, shown = self._stored[name], shown_name(name)
            for one in value.wanted:
                yield WantedImport.of(one.wanted, is_called=one.is_called, who=shown)
            if value.num_arrays:
                yield NotListed(arrays_left_out(value.num_arrays, shown))
            if value.problem and value.problem not in known:
                yield f"{shown} is not read: {value.problem}"

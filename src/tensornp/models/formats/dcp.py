"""Folders of `torch.distributed.checkpoint`: one entry for each tensor.

Items lie in `.distcp` files, and `.metadata`, a pickle that is not run, says where. No item of a tensor is read before
its values are asked for. Chunks in safetensors files, and compressed ones, are listed and not read.
"""

from __future__ import annotations

import math
import re
from itertools import islice
from typing import Any

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.errors import CheckpointError, TensornpError
from tensornp.models.entries.entry import NotListed, WeightEntry
from tensornp.models.entries.in_file import why_no_array
from tensornp.models.entries.take import Shape
from tensornp.models.files.address import Place, why_outside
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.chunks import ChunkSource, StoredChunk, opened_item, why_not_whole
from tensornp.models.formats.table import METADATA, Beside, Contents, listed
from tensornp.models.formats.torch_save import torch_zip_of
from tensornp.models.names.quoted import MAX_SHOWN, MAX_TOLD, cut, shown_name
from tensornp.models.optimizers import with_states
from tensornp.models.pickles import torch_pickle
from tensornp.models.pickles.leaves import MAX_ENTRIES, Leaves, NotBuilt, WantedImport, shown_key, wanted_of
from tensornp.models.pickles.reader import Opaque
from tensornp.models.pickles.torch_pickle import class_of, is_size, sizes_of, torch_name

_MAX_NBYTES = 2**28
"""Bytes of `.metadata`: a model of 1,000 ranks and its optimizer have 1.2 million chunks."""
_MAX_CHUNKS = 2**16
_MAX_VALUES = 20_000
"""Values next to the tensors that are read, each from an item of its own."""
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
    found = torch_pickle.read_torch_pickle(file.read(0, file.nbytes), repr(file.path))
    told = _fields(found.root, "Metadata")
    every = told.get("state_dict_metadata")
    if type(every) is not dict:
        raise CheckpointError(f"{file.path!r} holds no metadata of torch.distributed.checkpoint")
    problems: list[str] = [one for one in wanted_of(found) if not _KNOWN.fullmatch(str(one.wanted))]
    wanted = tuple(str(one.wanted) for one in problems if isinstance(one, WantedImport))
    items = _Items(folder, told.get("storage_data"))
    entries: list[WeightEntry] = []
    stored: dict[str, tuple[ListedFile, int, int] | str] = {}
    for key, one in islice(every.items(), MAX_ENTRIES):
        name = shown_key(key)
        if class_of(one)[1] == _TENSOR:
            entries.append(_tensor(items, name, key, _fields(one, _TENSOR))._with_(wanted_imports=wanted))
        elif class_of(one)[1] == _BYTES:
            stored[name] = items.place(key, None)
        else:
            problems.append(NotListed(f"{shown_name(name)} is neither a tensor nor bytes, and is not listed"))
    if len(every) > MAX_ENTRIES or len(stored) > _MAX_VALUES:
        limits = f"{MAX_ENTRIES:,} tensors, or {_MAX_VALUES:,} other values"
        problems.append(NotListed(f"it has more than {limits}, and the others are not listed"))
    known = {one.problem for one in entries}
    roots, values, more = _read(dict(islice(stored.items(), _MAX_VALUES)), known)
    return Contents(with_states(_nested(entries, roots), entries), values, [*problems, *more])


def _read(
    stored: dict[str, tuple[ListedFile, int, int] | str], known: set[str]
) -> tuple[dict[str, Any], Beside, list[str]]:
    roots: dict[str, Any] = {}
    values, problems, left = Beside(), list[str](), _MAX_NBYTES
    for name, place in stored.items():
        try:
            if isinstance(place, str):
                raise CheckpointError(place)
            left -= place[2]
            if left < 0 or len(values) > MAX_ENTRIES:
                raise CheckpointError(f"values of more than {_MAX_NBYTES:,} bytes, or with too many parts")
            with opened_item(*place) as item:
                found, _ = torch_zip_of(item)
        except TensornpError as error:
            problems += [NotListed(f"{shown_name(name)} is not read: {error}")] if str(error) not in known else []
            roots[name] = values[name] = NotBuilt("not read")
            continue
        roots[name], leaves = found.root, Leaves(found.root)
        for keys, _, value in leaves:
            is_tensor = type(value) is torch_pickle.PickledTensor
            said = NotBuilt(f"{value.dtype} tensor of shape {value.shape}") if is_tensor else value
            values[".".join(filter(None, [name, keys]))] = said
        problems += [*wanted_of(found, shown_name(name)), *map(NotListed, leaves.problems(shown_name(name)))]
    return roots, values, problems


def _fields(value: Any, record: str) -> dict[Any, Any]:
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
    properties, shape, told = fields.get("properties"), sizes_of(fields.get("size")), fields.get("chunks")
    state = properties.state if type(properties) is Opaque else None
    first = state.get("dtype") if type(state) is dict else state[0] if type(state) is tuple and state else None
    dtype = torch_name(first)
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


def _nested(entries: list[WeightEntry], values: dict[str, Any]) -> dict[str, Any]:
    """Return the saved tree by the names that torch has joined: ``optimizer.state.0.step``."""
    root: dict[str, Any] = {}
    for name in (*(one.name for one in entries), *values):
        place: Any = root
        *above, last = name.split(".")
        for key in above:
            place = place.setdefault(key, {}) if type(place) is dict else None
        if type(place) is dict:
            place.setdefault(last, values.get(name, _A_TENSOR))
    return root

"""Weights that accelerate has put aside: what is registered is on the meta device, and a hook knows where the data is.

No hook runs, and accelerate is not imported: of its own classes the attributes are read.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tensornp.core.lowlevel.attributes import dict_of, is_tensor
from tensornp.errors import CheckpointError, TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.file import FileEntry
from tensornp.models.entries.live import PLAIN, LiveEntry
from tensornp.models.files.source_file import SourceFile
from tensornp.models.formats.offloaded import offloaded_file
from tensornp.models.formats.safetensors.header import StoredTensor, read_header
from tensornp.models.names.quoted import shown_name

_MAX_DEPTH = 8
"""Hooks and maps that stand in each other."""
_ON_DISK = "offloaded to disk by accelerate"
_IN_MEMORY = "offloaded to memory by accelerate"
_NOT_UNDERSTOOD = "it is on the meta device; accelerate's hook holds it"


class Shelf(NamedTuple):
    """The map of a hook, from name to weight; the expression that reaches it, and what names begin with there."""

    weights: Any
    code: str
    prefix: str
    reaches_below: bool

    def below(self, name: str) -> Shelf:
        """Return the same for a submodule."""
        return self._replace(prefix=f"{self.prefix}{name}.")


class OffloadedEntry(LiveEntry):
    """A tensor that a hook keeps in memory for a parameter or a buffer."""

    __slots__ = ()

    def __init__(self, name: str, kind: str, tensor: Any, code: str, requires_grad: bool | None) -> None:
        super().__init__(name, kind, tensor, code, bool(requires_grad))
        self.note = ", ".join(filter(None, [_IN_MEMORY, self.note]))

    @property
    def identity(self) -> object:
        """The elements: the hook of each name has a tensor of its own over those of a tied one."""
        tensor = self.tensor
        if type(tensor) not in PLAIN or self.problem or not self.nbytes:
            return super().identity
        return str(tensor.device), tensor.data_ptr(), self.shape, tensor.stride(), self.dtype


class OffloadedFileEntry(FileEntry):
    """A weight in a file from which a hook reads it for each forward."""

    __slots__ = ("_folder", "_requires_grad")

    def __init__(
        self, live: LiveEntry, shape: tuple[int, ...], dtype: str, code: str, file: SourceFile, offset: int, *,
        folder: str = "",
    ) -> None:  # fmt: skip
        super().__init__(live.name, shape, dtype, code, file, offset)
        self.kind, self.note = live.kind, _ON_DISK
        self._folder, self._requires_grad = folder, live.requires_grad

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        """That of the parameter."""
        return self._requires_grad

    @property
    def location(self) -> str:
        """The path of its file, or of the folder in which each weight has one."""
        return self._folder or super().location

    @property
    def identity(self) -> object:
        """The place in the file."""
        return self.extents or id(self)


class _InFile(NamedTuple):
    """A weight that accelerate would read: what its index says of it, by what name, and the folder of other files."""

    told: Any
    key: str
    folder: Any


class Shelves:
    """Finds where the data of weights on the meta device lies; each file of many weights is looked at once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[SourceFile, dict[str, StoredTensor]] | str] = {}

    def entry_for(self, live: LiveEntry, name: str, shelves: tuple[Shelf, ...]) -> WeightEntry:
        """Return the weight that stands behind `live`, which a module has registered as `name`; itself if none does."""
        for shelf in shelves:
            key = shelf.prefix + name
            code = f"{shelf.code}[{key!r}]"
            try:
                found = _found_in(shelf, key)
            except _UnknownError:
                live.problem = _NOT_UNDERSTOOD
                continue
            if isinstance(found, _InFile):
                try:
                    return self._in_file(live, found, code)
                except Exception as error:
                    # An index may hold anything, and other weights are listed none the less.
                    said = str(error) if isinstance(error, TensornpError) else "accelerate's index of it is malformed"
                    live.note, live.problem = _ON_DISK, said
                    return live
            if found is not None and not is_tensor(found[0]):
                live.problem = _NOT_UNDERSTOOD
            elif found is not None:
                tensor, code = found
                return OffloadedEntry(live.name, live.kind, tensor, code, live.requires_grad)
        return live

    def _in_file(self, live: LiveEntry, found: _InFile, code: str) -> OffloadedFileEntry:
        told = found.told if type(found.told) is dict else {}
        path = told.get("safetensors_file")
        if path is not None:
            return self._in_safetensors(live, os.fspath(path), told.get("weight_name", found.key), told, code)
        shape, dtype, file = offloaded_file(found.folder, found.key, told)
        return OffloadedFileEntry(live, shape, dtype, code, file, 0, folder=os.fspath(found.folder))

    def _in_safetensors(
        self, live: LiveEntry, path: str, name: str, told: Mapping[str, Any], code: str
    ) -> OffloadedFileEntry:
        if path not in self._files:
            self._files[path] = _tensors_of(path)
        known = self._files[path]
        if isinstance(known, str):
            raise CheckpointError(known)
        file, tensors = known
        if name not in tensors:
            raise CheckpointError(f"{path!r} has no tensor {shown_name(str(name))}")
        one = tensors[name]
        entry = OffloadedFileEntry(live, one.shape, one.dtype, code, file, one.offset)
        entry.nbytes, entry.problem = one.nbytes, one.problem or entry.problem
        dtype = str(told.get("dtype", one.dtype)).removeprefix("torch.")
        if dtype != one.dtype:
            entry.note += f", and loaded as {dtype}"
        return entry


def shelves_of(module: Any, code: str) -> Iterator[Shelf]:
    """Yield the maps of the hooks that accelerate has put on a module, which `code` reaches."""
    stack = [((dict_of(module) or {}).get("_hf_hook"), f"{code}._hf_hook", 0)]
    while stack:
        hook, its_code, depth = stack.pop()
        held = dict_of(hook) or {} if hook is not None else {}
        if held.get("weights_map") is not None and held.get("offload"):
            yield Shelf(held["weights_map"], f"{its_code}.weights_map", "", held.get("place_submodules") is True)
        inner: Any = held.get("hooks")
        if type(inner) in (list, tuple) and depth < _MAX_DEPTH:
            stack.extend((one, f"{its_code}.hooks[{i}]", depth + 1) for i, one in enumerate(inner))


class _UnknownError(Exception):
    """A map is of a class that is not known, and is not asked."""


def _found_in(shelf: Shelf, key: str) -> _InFile | tuple[Any, str] | None:
    """Return where a map has a weight: in a file, or the tensor and its expression; None where it has none such."""
    weights, code = shelf.weights, shelf.code
    prefixed, loader = (_class_of_accelerate(name) for name in ("PrefixedDataset", "OffloadedWeightsLoader"))
    for _ in range(_MAX_DEPTH):
        held: Mapping[str, Any] = dict_of(weights) or {}
        if type(weights) in (dict, OrderedDict):
            return (weights[key], f"{code}[{key!r}]") if key in weights else None
        if type(weights) is prefixed:
            weights, key, code = held.get("dataset"), f"{held.get('prefix')}{key}", f"{code}.dataset"
        elif type(weights) is loader:
            in_memory: Any = held.get("state_dict")
            index: Any = held.get("index")
            if type(in_memory) not in (dict, OrderedDict) or type(index) not in (dict, OrderedDict):
                raise _UnknownError
            if key not in in_memory:
                return _InFile(index[key], key, held.get("save_folder")) if key in index else None
            weights, code = in_memory, f"{code}.state_dict"
        else:
            break
    raise _UnknownError


def _class_of_accelerate(name: str) -> Any:
    """Return a class of accelerate, if somebody has imported it."""
    return vars(sys.modules.get("accelerate.utils.offload", object)).get(name, _UnknownError)


def _tensors_of(path: str) -> tuple[SourceFile, dict[str, StoredTensor]] | str:
    try:
        file = SourceFile.at(path)
        return file, {one.name: one for one in read_header(file).tensors}
    except TensornpError as error:
        return str(error)

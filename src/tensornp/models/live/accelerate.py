"""Find weights that accelerate has offloaded behind meta parameters.

Only attributes of accelerate's hooks are read. No hook runs, and accelerate is not imported.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.errors import CheckpointError, TensornpError
from tensornp.models.entries.entry import WeightEntry, noted
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.entries.tensor import weight_of
from tensornp.models.files.source_file import SourceFile
from tensornp.models.formats.offloaded import offloaded_file
from tensornp.models.formats.safetensors import StoredTensor, read_header
from tensornp.models.names.quoted import shown_name

_MAX_DEPTH = 8
"""Hooks and maps that stand in each other."""
_ON_DISK = "offloaded to disk by accelerate"
_IN_MEMORY = "offloaded to memory by accelerate"
_NOT_UNDERSTOOD = "it is on the meta device; accelerate's hook holds it"


class Shelf(NamedTuple):
    """A hook's map of weights, its expression, and the prefix of its names."""

    weights: Any
    code: str
    prefix: str
    reaches_below: bool

    def below(self, name: str) -> Shelf:
        """Return the same for a submodule."""
        return self._replace(prefix=f"{self.prefix}{name}.")


@dataclass(frozen=True, slots=True)
class OffloadedFile(FileSource):
    """Values that a hook reads from a file for each forward.

    With `folder`, each weight there has a file of its own.
    """

    folder: str = ""
    is_trained: bool | None = field(default=None, compare=False)

    @property
    def requires_grad(self) -> bool | None:
        """That of the parameter."""
        return self.is_trained

    @property
    def location(self) -> str:
        """Return the path of the folder with a file for each weight, or of the file."""
        return self.folder or self.file.path


class _InFile(NamedTuple):
    """A weight in accelerate's index: its entry, its name and the index's folder."""

    told: Any
    key: str
    folder: Any


class Shelves:
    """Finds the data of weights on the meta device; reads each shared file once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[SourceFile, dict[str, StoredTensor]] | str] = {}

    def entry_for(self, live: WeightEntry, name: str, shelves: tuple[Shelf, ...]) -> WeightEntry:
        """Return the offloaded weight for the registered one, or `live` unchanged."""
        for shelf in shelves:
            key = shelf.prefix + name
            code = f"{shelf.code}[{key!r}]"
            try:
                found = _found_in(shelf, key)
            except _UnknownError:
                live = live._with_(problem=_NOT_UNDERSTOOD)
                continue
            if isinstance(found, _InFile):
                try:
                    return self._in_file(live, found, code)
                except Exception as error:
                    # An index may hold anything, and other weights are listed none the less.
                    said = str(error) if isinstance(error, TensornpError) else "accelerate's index of it is malformed"
                    return live._with_(note=_ON_DISK, problem=said)
            if found is not None and not is_tensor(found[0]):
                live = live._with_(problem=_NOT_UNDERSTOOD)
            elif found is not None:
                tensor, code = found
                return in_memory(live.name, live.kind, tensor, code, live.requires_grad)
        return live

    def _in_file(self, live: WeightEntry, found: _InFile, code: str) -> WeightEntry:
        told = found.told if type(found.told) is dict else {}
        path = told.get("safetensors_file")
        if path is not None:
            return self._in_safetensors(live, os.fspath(path), told.get("weight_name", found.key), told, code)
        shape, dtype, file = offloaded_file(found.folder, found.key, told)
        folder = os.fspath(found.folder)
        source = OffloadedFile(shape, dtype, file, 0, folder=folder, is_trained=live.requires_grad)
        return weight_in(source, live.name, code, kind=live.kind, note=_ON_DISK)

    def _in_safetensors(
        self, live: WeightEntry, path: str, name: str, told: Mapping[str, Any], code: str
    ) -> WeightEntry:
        if path not in self._files:
            self._files[path] = _tensors_of(path)
        known = self._files[path]
        if isinstance(known, str):
            raise CheckpointError(known)
        file, tensors = known
        if name not in tensors:
            raise CheckpointError(f"{path!r} has no tensor {shown_name(str(name))}")
        one = tensors[name]
        dtype = str(told.get("dtype", one.dtype)).removeprefix("torch.")
        note = _ON_DISK if dtype == one.dtype else f"{_ON_DISK}, and loaded as {dtype}"
        source = OffloadedFile(one.shape, one.dtype, file, one.offset, is_trained=live.requires_grad)
        return weight_in(source, live.name, code, kind=live.kind, nbytes=one.nbytes, note=note, problem=one.problem)


def in_memory(name: str, kind: str, tensor: Any, code: str, requires_grad: bool | None) -> WeightEntry:
    """Return a tensor that a hook keeps in memory for a parameter or a buffer.

    The hook of each name has a tensor of its own over those of a tied one: what has the same elements is one.
    """
    return noted(weight_of(name, kind, tensor, code, bool(requires_grad), by_elements=True), _IN_MEMORY)


def shelves_of(module: Any, code: str) -> Iterator[Shelf]:
    """Yield the maps of accelerate's hooks on a module."""
    stack = [((getattr(module, "__dict__", None) or {}).get("_hf_hook"), f"{code}._hf_hook", 0)]
    while stack:
        hook, its_code, depth = stack.pop()
        held = getattr(hook, "__dict__", None) or {} if hook is not None else {}
        if held.get("weights_map") is not None and held.get("offload"):
            yield Shelf(held["weights_map"], f"{its_code}.weights_map", "", held.get("place_submodules") is True)
        inner: Any = held.get("hooks")
        if type(inner) in (list, tuple) and depth < _MAX_DEPTH:
            stack.extend((one, f"{its_code}.hooks[{i}]", depth + 1) for i, one in enumerate(inner))


class _UnknownError(Exception):
    """A map is of a class that is not known, and is not asked."""


def _found_in(shelf: Shelf, key: str) -> _InFile | tuple[Any, str] | None:
    """Return a weight's file, or its tensor and expression, or None without both."""
    weights, code = shelf.weights, shelf.code
    prefixed, loader = (_class_of_accelerate(name) for name in ("PrefixedDataset", "OffloadedWeightsLoader"))
    for _ in range(_MAX_DEPTH):
        held: Mapping[str, Any] = getattr(weights, "__dict__", None) or {}
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

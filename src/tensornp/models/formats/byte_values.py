"""Show the values of a checkpoint that are not tensors: a pickle each, read on request."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tensornp.core.lowlevel.text import legible
from tensornp.core.tensor.paths import is_plain_value
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import NotListed
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.chunks import opened_item
from tensornp.models.formats.torch_save import torch_zip_of
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.leaves import NotBuilt, arrays_left_out, is_array, shown_key, words_of
from tensornp.models.pickles.reader import Opaque, PickledSet
from tensornp.models.pickles.torch_pickle import class_of
from tensornp.models.pickles.wanted import WantedImport, wanted_of

_MAX_LOOKED_INTO = 100
"""Values that are read when a checkpoint is opened; others are read on request."""
_MAX_DEPTH = 20
_MAX_PARTS = 100_000
"""Parts of a value that are shown; a pickle can repeat its parts."""


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

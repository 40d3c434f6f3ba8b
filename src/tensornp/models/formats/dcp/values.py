"""Values of a checkpoint that are no tensors: each is a pickle of its own, seen through when one asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from tensornp.core.lowlevel.units import with_article
from tensornp.core.tensor.paths import is_plain_value
from tensornp.errors import TensornpError
from tensornp.models.files.byte_range import ByteRange, ByteSource
from tensornp.models.files.source_file import SourceFile
from tensornp.models.files.zstd import Unpacked
from tensornp.models.formats.dcp.chunk import Form
from tensornp.models.formats.dcp.item_files import ItemFiles
from tensornp.models.formats.dcp.metadata import Item
from tensornp.models.formats.torch.archive import read_torch_zip
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.contents import dotted, values_of
from tensornp.models.pickles.records import Global
from tensornp.models.pickles.tensors import PickledTensor
from tensornp.models.pickles.wanted import WantedImport, wanted_of

MAX_LOOKED_INTO = 100
"""Values that are looked into when a checkpoint is opened; the others, when one asks for them."""
_MAX_NBYTES = 2**24
_MAX_LISTED = 10_000


class PickledObject(NamedTuple):
    """What lies in a value that is no plain one: what is plain in it, by name, and what it would import."""

    values: dict[str, Any]
    wanted_imports: tuple[str, ...]


@dataclass(slots=True)
class ByteValue:
    """Where a value lies; `problem` says why it is not read, `wanted` what it would import, once it was looked at."""

    file: SourceFile | None
    offset: int
    nbytes: int
    form: Form
    problem: str = ""
    wanted: tuple[WantedImport, ...] = ()

    @classmethod
    def of(cls, files: ItemFiles, item: Item | None) -> ByteValue:
        """Return the value of an item."""
        found = files.of_item(item) if item is not None else "where it lies is not told"
        if item is None or isinstance(found, str):
            return cls(None, 0, 0, "torch.save", str(found))
        return cls(found[0], item.offset, item.nbytes, found[1])

    def look(self) -> Any:
        """Return the value if it is plain, else a `PickledObject`, or a sentence that says why it is not read."""
        if self.problem or self.file is None:
            return f"not read: {self.problem}"
        try:
            with self.file.opened() as there:
                said = f"{self.file.path!r}, from byte {self.offset:,} on,"
                stored: ByteSource = ByteRange(there, self.offset, self.nbytes, said)
                found, *_ = read_torch_zip(
                    Unpacked(stored, 2 * _MAX_NBYTES) if self.form == "zstd" else stored, _MAX_NBYTES
                )
        except TensornpError as error:
            return f"not read: {error}"
        if is_plain_value(found.root):
            return found.root
        if isinstance(found.root, Global):
            return str(found.root)
        values: dict[str, Any] = {}
        for one in islice(values_of(found.root), _MAX_LISTED):
            is_tensor = isinstance(one, PickledTensor)
            value = (
                f"{with_article(one.dtype_name)} tensor of shape {one.shape}"
                if isinstance(one, PickledTensor)
                else one.value
            )
            values[dotted(one.path) or ("tensor" if is_tensor else "value")] = value
        self.wanted = tuple(wanted_of(found))
        return PickledObject(values, tuple(str(one.wanted) for one in self.wanted))


class ByteValues(Mapping[str, Any]):
    """A mapping from name to value, each looked into once, when one asks for it; with what is known already."""

    def __init__(self, known: Mapping[str, Any], stored: Mapping[str, ByteValue]) -> None:
        self._stored = stored
        self._known = {name: value for name, value in known.items() if name not in stored}
        self._names = dict.fromkeys([*known, *stored])

    def __getitem__(self, name: str) -> Any:
        """Return the value."""
        if name in self._stored and name not in self._known:
            self._known[name] = self._stored[name].look()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def problems(self, count: int) -> Iterator[str]:
        """Yield what is wrong with the first so many, for which they are looked into."""
        for name in islice(self._stored, count):
            value = self[name]
            if isinstance(value, PickledObject):
                for one in self._stored[name].wanted:
                    yield WantedImport.of(one.wanted, is_called=one.is_called, who=shown_name(name))
            elif self._stored[name].problem:
                yield f"{shown_name(name)} is not read: {self._stored[name].problem}"

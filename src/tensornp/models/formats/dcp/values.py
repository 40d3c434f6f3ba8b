"""Values of a checkpoint that are no tensors: each is a pickle of its own, seen through when one asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from tensornp.core.lowlevel.text import legible
from tensornp.core.lowlevel.threads import carried_out
from tensornp.core.tensor.paths import is_plain_value
from tensornp.errors import TensornpError
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.files.byte_range import ByteRange, ByteSource
from tensornp.models.files.source_file import ListedFile, SourceFile
from tensornp.models.files.zstd import Unpacked
from tensornp.models.formats.dcp.chunk import Form
from tensornp.models.formats.dcp.item_files import ItemFiles
from tensornp.models.formats.dcp.metadata import Item
from tensornp.models.formats.torch_save import read_torch_zip
from tensornp.models.names.quoted import shown_name
from tensornp.models.pickles.leaves import arrays_left_out, shown_key
from tensornp.models.pickles.reader import Opaque, PickledSet
from tensornp.models.pickles.torch_pickle import NotBuilt, class_of, is_array, words_of
from tensornp.models.pickles.wanted import WantedImport, wanted_of

MAX_LOOKED_INTO = 100
"""Values that are looked into when a checkpoint is opened; the others, when one asks for them."""
_MAX_NBYTES = 2**24
_SMALL_NBYTES = 2**16
"""Up to which values come together."""
_MAX_FILES = 16
"""That are read at once."""
_MAX_DEPTH = 20
_FREE_SIZE, _SIZE_PER_NBYTES = 1000, 8
"""How many values and characters what is shown of any value may have, and how many more for each byte of its pickle."""


@dataclass(slots=True)
class ByteValue:
    """Where a value lies, and why it is not read.

    Once it was looked at, `wanted` is what it would import, and `num_arrays` how many arrays of NumPy it has.
    """

    file: ListedFile | None
    offset: int
    nbytes: int
    form: Form
    problem: str = ""
    wanted: tuple[WantedImport, ...] = ()
    num_arrays: int = 0

    @classmethod
    def of(cls, files: ItemFiles, item: Item | None) -> ByteValue:
        """Return the value of an item."""
        found = files.of_item(item) if item is not None else "where it lies is not told"
        if item is None or isinstance(found, str):
            return cls(None, 0, 0, "torch.save", str(found))
        return cls(found[0], item.offset, item.nbytes, found[1])

    def look(self) -> Any:
        """Return the value, with a `NotBuilt` for what is not plain, or a sentence that says why it is not read."""
        if self.problem or self.file is None:
            return f"not read: {self.problem}"
        try:
            with self.file.scanned(), self.file.opened() as there:
                said = f"{self.file.path!r}, from byte {self.offset:,} on,"
                stored: ByteSource = ByteRange(there, self.offset, self.nbytes, said)
                found, *_ = read_torch_zip(
                    Unpacked(stored, 2 * _MAX_NBYTES) if self.form == "zstd" else stored, _MAX_NBYTES
                )
        except TensornpError as error:
            return f"not read: {error}"
        self.wanted = tuple(wanted_of(found))
        showing = _Showing(_FREE_SIZE + _SIZE_PER_NBYTES * found.nbytes)
        shown = showing.shown(found.root)
        self.num_arrays = showing.num_arrays
        return shown


def _is_elsewhere(file: ListedFile | None) -> bool:
    return file is not None and not isinstance(file, SourceFile)


class _Showing:
    """Shows values within a limit on their size, since a pickle can repeat its parts."""

    def __init__(self, left: int) -> None:
        self._left = left
        self.num_arrays = 0

    def shown(self, value: Any, depth: int = 0) -> Any:
        """Return a value with a `NotBuilt` for each part that is not a plain value, list, tuple or dictionary."""
        self._left -= 1 + (len(value) if type(value) in (str, bytes) else 0)
        if self._left < 0 or depth > _MAX_DEPTH:
            return NotBuilt("…")
        if is_plain_value(value):
            return value
        self.num_arrays += is_array(value)
        if words := words_of(value):
            return NotBuilt(words)
        if type(value) is dict:
            # Keys may be objects.
            pairs = ((key if is_plain_value(key) else shown_key(key), one) for key, one in value.items())
            return {self.shown(key): self.shown(one, depth + 1) for key, one in takewhile(self._is_left, pairs)}
        if type(value) in (list, tuple, PickledSet):
            made = [self.shown(one, depth + 1) for one in takewhile(self._is_left, value)]
            return tuple(made) if type(value) is tuple else made
        parts = (value.args, value.items, value.appended, value.state) if type(value) is Opaque else ()
        name = legible(".".join(filter(None, class_of(value)))) or "an object"
        return NotBuilt(name, tuple(self.shown(one, depth + 1) for one in parts if one))

    def _is_left(self, _: Any) -> bool:
        return self._left >= 0


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

    def beside(self) -> dict[str, Any]:
        """Return what stands beside the weights, each looked into: not what a checkpoint says of itself."""
        return {name: self[name] for name in self._stored}

    def _look_into(self, names: Iterable[str]) -> None:
        """Look into values: where a file is elsewhere, small ones by few requests, and several files at once."""
        of_file: dict[ListedFile | None, list[str]] = {}
        for name in names:
            of_file.setdefault(self._stored[name].file, []).append(name)

        def look(file: ListedFile | None, names: list[str]) -> None:
            with file.scanned() if file is not None else nullcontext():
                for name in names:
                    self[name]

        num_threads = min(_MAX_FILES, len(of_file)) if any(map(_is_elsewhere, of_file)) else 1
        list(carried_out(lambda one: look(*one), of_file.items(), num_threads))

    def problems(self, count: int, lost: Mapping[str, str]) -> Iterator[str]:
        """Yield what is wrong with the first so many, for which they are looked into, but for files that are lost."""
        self._look_into(list(islice(self._stored, count)))
        for name in islice(self._stored, count):
            for one in self._stored[name].wanted:
                yield WantedImport.of(one.wanted, is_called=one.is_called, who=shown_name(name))
            if num := self._stored[name].num_arrays:
                yield NotListed(arrays_left_out(num, shown_name(name)))
            if self._stored[name].problem and self._stored[name].problem not in lost.values():
                yield f"{shown_name(name)} is not read: {self._stored[name].problem}"

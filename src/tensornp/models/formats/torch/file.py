"""Files of `torch.save`: the zip and the format before it, looked through without running them or reading values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.core.tensor.strides import unless_in_order
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry, inner_text, nothing
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.entries.source import NoSource
from tensornp.models.files.byte_range import ByteRange
from tensornp.models.files.source_file import ListedFile, Reader
from tensornp.models.files.zip_directory import ZIP_MAGIC, Record
from tensornp.models.formats.contents import Beside, Contents
from tensornp.models.formats.torch.archive import looked_through, of_torch, why_unread
from tensornp.models.names.quoted import part_of_storage
from tensornp.models.optimizers.saved import optimizers_in
from tensornp.models.pickles.contents import OfSet, PickledValue, Unlisted, as_container, dotted, shown_key, values_of
from tensornp.models.pickles.look_through import MAX_NBYTES, xray
from tensornp.models.pickles.records import XRay
from tensornp.models.pickles.tensors import STORAGES, PickledTensor, StorageTold, first_told, storage_key, told_storage
from tensornp.models.pickles.wanted import wanted_of
from tensornp.models.quantization.quantizer import quantized
from tensornp.models.reading.lazy_signs import AS_STORED, LazySigns

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_MAX_SAID = 100_000
_MAX_SAID_IMPORTS = 100
_PIECE_NBYTES = 2**18
"""Bytes that are read of a pickle of which nobody tells the size; most are far shorter."""
_FREE_NAME_CHARACTERS, _NAMES_PER_NBYTES = 2**20, 8
"""Characters that the names of any file may have together, and how many more for each byte of its pickle."""


def _is_legacy(data: bytes) -> bool:
    """Return whether a file that begins so is of the format before the zip: its first pickle is a known number."""
    try:
        return bool(xray(data[:64]).root == LEGACY_MAGIC)
    except CheckpointError:
        return False


def read_zip(file: ListedFile, members: dict[str, Record]) -> Contents:
    """Return what a zip of these members holds; CheckpointError if it is none of `torch.save`, or not sound."""
    if file.read(0, len(ZIP_MAGIC)) != ZIP_MAGIC:
        # torch would take it for a tar or a pickle.
        raise CheckpointError(f"{file.path!r} is a zip file, but does not begin as those of torch.save do")
    with file.opened() as there:
        archive = of_torch(ByteRange(there, 0, file.nbytes, repr(file.path)), members)
    contents = _listed(file, archive.found, archive.storages, is_swapped=archive.is_swapped)
    if archive.num_constants:
        said = f"{counted(archive.num_constants, 'tensor')} that TorchScript holds as constants"
        contents.problems.append(NotListed(f"{said} {'is' if archive.num_constants == 1 else 'are'} not listed"))
    return contents


def read_legacy(file: ListedFile) -> Contents | None:
    """Return what a file of the format before the zip holds; None of another one, CheckpointError if not sound."""
    if not _is_legacy(file.read(0, min(file.nbytes, 64))):
        return None
    with file.opened() as there:
        at, scans = 0, []
        for _ in range(5):
            scans.append(_pickle_at(there, at, file))
            at += scans[-1].nbytes
        _, _, _, found, keys = scans
        # torch runs all five.
        found = found._replace(
            imports=tuple(dict.fromkeys(chain.from_iterable(one.imports for one in scans))),
            called=frozenset().union(*(one.called for one in scans)),
        )
        if scans[0].root != LEGACY_MAGIC or type(keys.root) is not list:
            raise CheckpointError(f"{file.path!r} is not a file of torch.save")
        # Also those of which no tensor is listed: each lies behind the one before.
        told = {one.key: one.itemsize for one in map(told_storage, reversed(found.persistent)) if one is not None}
        storages: dict[str, Record] = {}
        rest = 0
        for key in map(storage_key, keys.root):
            if key is None or key not in told or at + 8 > file.nbytes:
                # Where the next one begins is not told.
                break
            nbytes = int.from_bytes(there.read(at, 8).tobytes(), "little") * told[key]
            if at + 8 + nbytes > file.nbytes:
                break
            storages[key] = Record(at + 8, nbytes)
            at += 8 + nbytes
        else:
            rest = file.nbytes - at
    contents = _listed(file, found, storages)
    if rest:
        # Whoever saves twice into one open file loads twice from it.
        contents.problems.append(
            NotListed(f"{counted(rest, 'byte')} at its end can belong to no tensor that is listed")
        )
    return contents


def _pickle_at(there: Reader, at: int, file: ListedFile) -> XRay:
    """Return what the pickle from byte `at` on would build; its end is found by reading it, some more each time."""
    most = min(file.nbytes - at, MAX_NBYTES)
    nbytes = _PIECE_NBYTES
    while nbytes < most:
        try:
            return xray(there.read(at, nbytes).tobytes())
        except CheckpointError:
            nbytes *= 4
    return looked_through(repr(file.path), there.read(at, most).tobytes())


def _listed(file: ListedFile, found: XRay, storages: dict[str, Record], *, is_swapped: bool = False) -> Contents:
    """Return the entries of what the pickle would build, with what it would import."""
    every = sorted(wanted_of(found), key=lambda one: not one.is_alarm)
    wanted = [str(one.wanted) for one in every]
    problems: list[str] = [*every[:_MAX_SAID_IMPORTS]]
    if len(wanted) > _MAX_SAID_IMPORTS:
        problems.append(f"it wants to import {len(wanted) - _MAX_SAID_IMPORTS:,} things more")
    values: list[PickledTensor | PickledValue] = []
    unlisted, num_said = Unlisted(), 0
    left = _FREE_NAME_CHARACTERS + _NAMES_PER_NBYTES * found.nbytes
    for one in values_of(found.root, unlisted):
        if isinstance(one, PickledValue):
            num_said += 1
            if num_said > _MAX_SAID:
                continue
        left -= len(dotted(one.path))
        if left < 0:
            problems.append(NotListed("its names are too long, and only the first are listed"))
            break
        values.append(one)
    problems += map(NotListed, unlisted.problems())
    if unlisted.is_repeated:
        problems.append("some values are reached in endlessly many ways, and not listed by each")
    entries: list[WeightEntry] = []
    laying = _Laying(file, storages, tuple(wanted), first_told(found.persistent), is_swapped)
    besides, of_sets = Beside(), set()
    for one, name in zip(values, _names([one.path for one in values]), strict=True):
        if isinstance(one, PickledTensor):
            entries.append(laying.entry(one, name))
        else:
            besides[name] = one.value
            if any(type(key) is OfSet for key in one.path):
                of_sets.add(name)
    besides.of_sets, besides.others = of_sets, {dotted(path): said for path, said in unlisted.others}
    paths = [one.path for one in values if isinstance(one, PickledTensor)]
    optimizers, entries = optimizers_in(found.root, as_container, lambda: paths, entries)
    return Contents(entries, besides, problems, optimizers)


def _names(paths: list[tuple[Any, ...]]) -> list[str]:
    """Return a name of its own for each path: its keys and dots; where two were alike, its keys in brackets."""
    joined = [dotted(path) or "tensor" for path in paths]
    times = Counter(joined)
    taken: set[str] = set()
    again: Counter[str] = Counter()
    names = []
    for path, plain in zip(paths, joined, strict=True):
        name = whole = plain if times[plain] == 1 else _in_brackets(path)
        # Also a key can be spelled like such brackets, and long ones be cut.
        while name in taken or (name in times and name != plain):
            again[whole] += 1
            name = f"{whole} ({again[whole] + 1})"
        taken.add(name)
        names.append(name)
    return names


def _in_brackets(path: tuple[Any, ...]) -> str:
    return "".join(f"[{dotted((key,))!r}]" if type(key) is str else f"[{shown_key(key)}]" for key in path)


def _stored(tensor: PickledTensor) -> Iterator[PickledTensor]:
    """Yield the tensors that lie in storages, of which another one consists."""
    for _, one in tensor.inner:
        if one.is_wrapper:
            yield from _stored(one)
        elif one.dtype:
            yield one


class _Laying:
    """Makes the entries of a file: `storages` by their keys, and `wanted` is what it would import.

    `first` is what is said of each storage first.
    """

    def __init__(
        self,
        file: ListedFile,
        storages: dict[str, Record],
        wanted: tuple[str, ...],
        first: dict[str, StorageTold],
        is_swapped: bool,
    ) -> None:
        self._file, self._storages, self._wanted, self._first = file, storages, wanted, first
        self._is_swapped = is_swapped

    def entry(self, tensor: PickledTensor, name: str) -> WeightEntry:
        """Return the entry of one tensor: none of its bytes is read unless all of them are there."""
        code = f"torch.load({self._file.path!r}, map_location='cpu', weights_only=True){_in_brackets(tensor.path)}"
        if self._wanted or any(type(key) is OfSet for key in tensor.path):
            # torch would refuse it, or import what the file names; no number reaches into a set.
            code = f"tnp.weights({self._file.path!r})[{name!r}].to_numpy()"
        laid = partial(self._laid, name, code)
        if not tensor.dtype:
            made = nothing(name, "", code, tensor.problem, self._file.path)
        elif tensor.is_wrapper:
            made = _wrapper(name, tensor, code, tuple(map(laid, _stored(tensor))), self._file.path)
        elif tensor.is_quantized:
            made = quantized(laid(tensor), tensor.quantizer, laid)
        else:
            made = laid(tensor._replace(problem=tensor.problem or self._why_other(tensor)))
        kind = "parameter" if tensor.is_parameter else "tensor"
        return made._with_(kind=kind, wanted_imports=self._wanted)

    def _why_other(self, tensor: PickledTensor) -> str:
        """Return why torch would give other values: of one storage, it keeps the dtype that is told first."""
        first = self._first.get(tensor.key) if tensor.storage_nbytes else None
        dtype = STORAGES.get(first.kind, first.kind) if first is not None else ""
        is_other = dtype and tensor.storage_dtype not in (dtype, "")
        return f"its storage is told as {dtype} before, which torch keeps" if is_other else ""

    def _laid(self, name: str, code: str, tensor: PickledTensor) -> WeightEntry:
        """Return what a tensor of a known dtype shows of its storage."""
        record = self._storages.get(tensor.key)
        problem = why_unread(tensor, record)
        if self._is_swapped and tensor.dtype == "complex32":
            problem = problem or "its halves are in another byte order, which is not read"
        itemsize = stored_dtype(tensor.dtype).itemsize
        source = FileSource(
            tensor.shape, tensor.dtype, self._file,
            (record.offset if record is not None else 0) + tensor.offset * itemsize,
            unless_in_order(tensor.shape, tensor.strides) if tensor.is_sound else None, self._is_swapped,
            () if tensor.lazy == AS_STORED else (LazySigns(tensor.dtype, tensor.lazy),),
        )  # fmt: skip
        # What is said of what is not sound is not believed.
        made = weight_in(source, name, code, problem=problem, nbytes=None if tensor.is_sound else 0)
        said = [tensor.class_name] if tensor.class_name else []
        said += ["other byte order"] if self._is_swapped and not problem else []
        if not problem and tensor.storage_nbytes > made.nbytes:
            said.append(part_of_storage(made.numel, tensor.storage_nbytes, itemsize, "on disk"))
        return made._with_(note=", ".join(said)) if said else made


def _wrapper(name: str, tensor: PickledTensor, code: str, parts: tuple[WeightEntry, ...], path: str) -> WeightEntry:
    """Return a weight whose class computes its values from `parts`, as those of torchao and a sharded DTensor do."""
    # Two attributes can be one tensor.
    nbytes = sum({part.extents: part.nbytes for part in parts}.values())
    inner = [(name, one.dtype, one.shape) for name, one in tensor.inner]
    note = inner_text(tensor.class_name, inner) if tensor.is_computed else tensor.class_name
    source = NoSource(path, identity=(path, tensor.number), consists_of=parts)
    return WeightEntry(name, "tensor", tensor.shape, tensor.dtype, nbytes, source, code, note, tensor.problem)

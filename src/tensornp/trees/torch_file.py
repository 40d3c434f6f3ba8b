"""Files of `torch.save`: the zip and the format before it, looked through without running them or reading values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tensornp.core.values.decode import stored_dtype
from tensornp.errors import CheckpointError
from tensornp.trees.byte_range import ByteRange
from tensornp.trees.contents import Contents
from tensornp.trees.entry import WeightEntry
from tensornp.trees.file_entry import FileEntry
from tensornp.trees.names import shown_name
from tensornp.trees.nothing_entry import NothingEntry
from tensornp.trees.source_file import SourceFile
from tensornp.trees.torch_zip import looked_through, of_torch, why_unread
from tensornp.trees.unpickled import KNOWN_IMPORTS, MAX_ENTRIES, PickledTensor, shown_key, values_of
from tensornp.trees.xray import MAX_NBYTES, XRay, xray
from tensornp.trees.zip_file import Record

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_MAX_SAID = 1000


def is_legacy(data: bytes) -> bool:
    """Return whether a file that begins so is of the format before the zip: its first pickle is a known number."""
    try:
        return bool(xray(data[:64]).root == LEGACY_MAGIC)
    except CheckpointError:
        return False


def read_zip(file: SourceFile, members: dict[str, Record]) -> Contents:
    """Return what a zip of these members holds; CheckpointError if it is none of `torch.save`, or not sound."""
    with file.opened() as there:
        found, storages = of_torch(ByteRange(there, 0, file.nbytes, repr(file.path)), members)
    return _listed(file, found, storages)


def read_legacy(file: SourceFile) -> Contents:
    """Return what a file of the format before the zip holds; CheckpointError if it is not sound."""
    with file.opened() as there:
        at, scans = 0, []
        for _ in range(5):
            scans.append(looked_through(repr(file.path), there.read(at, min(file.nbytes - at, MAX_NBYTES)).tobytes()))
            at += scans[-1].nbytes
        _, _, _, found, keys = scans
        if scans[0].root != LEGACY_MAGIC or type(keys.root) is not list:
            raise CheckpointError(f"{file.path!r} is no file of torch.save")
        itemsizes = {one.key: one.storage_itemsize for one in values_of(found.root) if isinstance(one, PickledTensor)}
        storages: dict[str, Record] = {}
        for key in map(str, keys.root):
            if at + 8 > file.nbytes:
                break
            numel = int.from_bytes(there.read(at, 8).tobytes(), "little")
            nbytes = numel * itemsizes.get(key, 0)
            if key not in itemsizes or at + 8 + nbytes > file.nbytes:
                # Where the next one begins is not told.
                break
            storages[key] = Record(at + 8, nbytes)
            at += 8 + nbytes
    return _listed(file, found, storages)


def _listed(file: SourceFile, found: XRay, storages: dict[str, Record]) -> Contents:
    """Return the entries of what the pickle would build, with what it would import."""
    wanted = [str(one) for one in found.imports if tuple(one) not in KNOWN_IMPORTS]
    problems = [f"it wants to import {shown_name(name)}, and nothing was imported" for name in wanted]
    values = list(values_of(found.root))
    if len(values) >= MAX_ENTRIES:
        problems.append(f"it has more than {MAX_ENTRIES:,} values, and the others are not listed")
    names = _names([one.path for one in values])
    entries: list[WeightEntry] = []
    besides: dict[str, Any] = {}
    for one, name in zip(values, names, strict=True):
        if isinstance(one, PickledTensor):
            entries.append(_entry(file, one, name, storages, tuple(wanted)))
        elif len(besides) < _MAX_SAID:
            besides[name] = one.value
    return Contents(entries, besides, problems)


def _names(paths: Iterable[tuple[Any, ...]]) -> list[str]:
    every = list(paths)
    joined = [".".join(map(shown_key, path)) or "tensor" for path in every]
    times = Counter(joined)
    return [
        name if times[name] == 1 else "".join(f"[{key!r}]" for key in path)
        for path, name in zip(every, joined, strict=True)
    ]


def _entry(
    file: SourceFile, tensor: PickledTensor, name: str, storages: dict[str, Record], wanted: tuple[str, ...]
) -> WeightEntry:
    """Return the entry of one tensor: none of its bytes is read unless all of them are there."""
    path = "".join(f"[{shown_key(key)!r}]" if type(key) is str else f"[{shown_key(key)}]" for key in tensor.path)
    code = f"torch.load({file.path!r}, map_location='cpu', weights_only=True){path}"
    kind = "parameter" if tensor.is_parameter else "tensor"
    record = storages.get(tensor.key)
    problem = why_unread(tensor, record)
    if not tensor.dtype:
        made: WeightEntry = NothingEntry(name, kind, code, problem, file.path)
    else:
        itemsize = stored_dtype(tensor.dtype).itemsize
        offset = (record.offset if record is not None else 0) + tensor.offset * itemsize
        made = FileEntry(name, tensor.shape, tensor.dtype, code, file, offset, strides=tensor.strides)
        made.kind, made.problem = kind, problem or made.problem
        if not problem and tensor.storage_nbytes > made.nbytes:
            made.note = f"view of a larger storage: {made.numel:,} of {tensor.storage_nbytes // itemsize:,} elements"
    made.wanted_imports = wanted
    return made

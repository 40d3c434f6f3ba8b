"""List files of `torch.save`: the zip, and the format before it.

A pickle is read and not run, and no value of a tensor is read. Tensors of big-endian files have no values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import NoSource, NotListed, WeightEntry, noted, nothing
from tensornp.models.entries.in_file import FileSource, nbytes_of, weight_in
from tensornp.models.entries.take import VALUES, Array, Ranges, as_slice
from tensornp.models.files.source_file import ListedFile, Reader
from tensornp.models.files.zip_directory import ByteRange, Record, records_of
from tensornp.models.formats.table import Beside, Contents
from tensornp.models.names.quoted import part_of_storage, unique_names
from tensornp.models.optimizers import with_states
from tensornp.models.pickles.leaves import Leaves, wanted_of
from tensornp.models.pickles.reader import MAX_NBYTES, Pickled, read_pickle
from tensornp.models.pickles.torch_pickle import PickledTensor, Storage, read_torch_pickle, torch_name

_DTYPES = ("qint8", "quint8", "qint32")
_MAX_SCALE = float(np.finfo(np.float32).max)
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8")


@dataclass(frozen=True, slots=True)
class AffineCodes:
    """Decodes integers by a scale and a zero point; those of each index along an `axis` lie in the file."""

    axis: int | None
    scales: FileSource | float
    zeros: FileSource | int
    quantized: str

    @np.errstate(all="ignore")
    def __call__(self, stored: Array, ranges: Ranges) -> Array:
        # As torch does: one scale in float32, and those of an axis in float64; differences of 32 bits wrap around.
        scales: Any = self.scales if self.axis is not None else np.float32(self.scales)  # type: ignore[arg-type]
        zeros: Any = self.zeros if self.axis is not None else np.int32(self.zeros)  # type: ignore[arg-type]
        if self.axis is not None:
            wanted, lined = as_slice(ranges[self.axis]), [1] * stored.ndim
            lined[self.axis] = -1
            scales = scales.numbers(wanted).astype(np.float64).reshape(lined)
            zeros = zeros.numbers(wanted).astype(np.int64).reshape(lined)
        codes = stored.astype(np.int32 if self.axis is None else np.int64)
        return np.asarray((codes - zeros).astype(VALUES) * scales).astype(VALUES)


def quantized(codes: WeightEntry, quantizer: Any, laid: Callable[[PickledTensor], WeightEntry]) -> WeightEntry:
    """Return a weight of codes with their meaning; `laid` gives a tensor's weight."""
    source: Any = codes._source
    dtype, made, note = f"q{codes.dtype}", None, ""
    name, *facts = quantizer if type(quantizer) is tuple and quantizer and dtype in _DTYPES else ("",)
    match torch_name(name), facts:
        case "per_tensor_affine", [int() | float() as scale, int() as zero] if abs(scale) <= _MAX_SCALE:
            if np.iinfo(codes.dtype).min <= zero <= np.iinfo(codes.dtype).max:
                made = AffineCodes(None, float(scale), zero, dtype)
                note = f"quantized per tensor, scale {made.scales:g}, zero point {zero}"
        case "per_channel_affine", [PickledTensor(Storage()), PickledTensor(Storage()), int() as axis]:
            scales, zeros = map(laid, facts[:2])
            size = source.shape[axis : axis + 1] if axis >= 0 else None
            fits = scales.dtype in _FLOATS and zeros.dtype in _INTEGERS and size == scales.shape == zeros.shape
            if fits and not (scales.problem or zeros.problem):
                made = AffineCodes(axis, scales._source, zeros._source, dtype)  # type: ignore[arg-type]
                note = f"quantized per channel along axis {axis}"
    if made is None:
        why = codes.problem or "its scheme of quantization is not read, or its scales do not fit"
        return codes._with_(dtype=dtype, problem=why, note="")
    return noted(codes._with_(dtype=dtype, _source=replace(source, codec=made)), note)


LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_MAX_SAID = 100_000
_PIECE_NBYTES = 2**18
"""Bytes of a pickle that are read first, since a legacy file does not tell its length."""


def torch_zip_of(source: ByteRange, members: dict[str, Record] | None = None) -> tuple[Pickled, dict[str, Record]]:
    """Return the pickle and the storages of a zip of `torch.save`; CheckpointError if it is damaged."""
    records = members if members is not None else records_of(source)
    for name, one in records.items():
        if one.packed_nbytes is not None and not one.problem:
            records[name] = one._replace(problem="is compressed")
    pickles = [name for name in records if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise CheckpointError(f"{source.said} is a zip file with {len(pickles)} data.pkl, and none of torch.save")
    prefix, place = pickles[0].removesuffix("data.pkl"), records[pickles[0]]
    problem = place.problem or (f"has {place.nbytes:,} bytes" if place.nbytes > MAX_NBYTES else "")
    if problem:
        raise CheckpointError(f"{source.said} cannot be looked through: its data.pkl {problem}")
    found = read_torch_pickle(source.part(place.offset, place.nbytes), source.said)
    # Before torch 2.1, all files were little-endian.
    order, told = records.get(f"{prefix}byteorder"), b"little"
    if order is not None:
        told = source.part(order.offset, min(order.nbytes, 8)) if not order.problem else b""
    there = f"{prefix}data/"
    storages = {name[len(there) :]: one for name, one in records.items() if name.startswith(there)}
    if told != b"little":
        storages = {key: one._replace(problem="is not little-endian") for key, one in storages.items()}
    return found, storages


def why_unread(tensor: PickledTensor, record: Record | None) -> str:
    """Return why a tensor with the storage `record` is not read; empty if all of its bytes are there."""
    if tensor.problem:
        return tensor.problem
    if record is None:
        return "its storage is not in the file"
    if record.problem:
        return f"its storage {record.problem}"
    declared = tensor.storage.nbytes
    return f"its storage has {record.nbytes:,} bytes, and {declared:,} are declared" if record.nbytes < declared else ""


def contents_of_zip(file: ListedFile, source: ByteRange, members: dict[str, Record]) -> Contents:
    """Return the contents of a zip of `torch.save`; CheckpointError if it is not sound."""
    contents = _listed(file, *torch_zip_of(source, members))
    if any(name.endswith("/constants/0") for name in members):
        contents.problems.append(NotListed("tensors that TorchScript holds as constants are not listed"))
    return contents


def read_legacy(file: ListedFile) -> Contents | None:
    """Return the contents of a file of the format before the zip; None if it is of another format."""
    try:
        if read_pickle(file.read(0, min(file.nbytes, 64))).root != LEGACY_MAGIC:
            return None
    except CheckpointError:
        return None
    with file.scanned() as there:
        at, pickles = 0, []
        for _ in range(5):
            pickles.append(_pickle_at(there, at, file))
            at += pickles[-1].nbytes
        _, _, _, found, keys = pickles
        if type(keys.root) is not list:
            raise CheckpointError(f"{file.path!r} is not a file of torch.save")
        itemsizes = {one.key: one.itemsize for one in found.persistent if type(one) is Storage}
        storages: dict[str, Record] = {}
        for key in keys.root:
            if type(key) is not str or key not in itemsizes or at + 8 > file.nbytes:
                break
            nbytes = int.from_bytes(there.read(at, 8), "little") * itemsizes[key]
            if at + 8 + nbytes > file.nbytes:
                break
            storages[key] = Record(at + 8, nbytes)
            at += 8 + nbytes
    # torch runs all five pickles.
    found = found._replace(
        imports=tuple(dict.fromkeys(chain.from_iterable(one.imports for one in pickles))),
        called=frozenset().union(*(one.called for one in pickles)),
    )
    return _listed(file, found, storages)


def _pickle_at(there: Reader, at: int, file: ListedFile) -> Pickled:
    most = min(file.nbytes - at, MAX_NBYTES)
    nbytes = _PIECE_NBYTES
    while nbytes < most:
        try:
            return read_torch_pickle(there.read(at, nbytes), repr(file.path))
        except CheckpointError:
            nbytes *= 4
    return read_torch_pickle(there.read(at, most), repr(file.path))


def _listed(file: ListedFile, found: Pickled, storages: dict[str, Record]) -> Contents:
    """Return the entries of a pickle, its plain values, and the problems with its imports."""
    every = sorted(wanted_of(found), key=lambda one: not one.is_alarm)
    wanted = tuple(str(one.wanted) for one in every)
    leaves = Leaves(found.root)
    every_leaf = list(leaves)
    tensors = [leaf for leaf in every_leaf if type(leaf[-1]) is PickledTensor]
    said = [leaf for leaf in every_leaf if type(leaf[-1]) is not PickledTensor][:_MAX_SAID]
    names = unique_names([name or "value" for name, _, _ in said])
    besides = Beside(zip(names, (value for _, _, value in said), strict=True))
    entries: list[WeightEntry] = []
    in_file = _Storages(file, storages)
    names = unique_names([name or "tensor" for name, _, _ in tensors])
    for (_, bracket, tensor), name in zip(tensors, names, strict=True):
        code = f"torch.load({file.path!r}, map_location='cpu', weights_only=True){bracket}"
        if wanted:
            # torch would refuse it, or import what the file names.
            code = f"tnp.weights({file.path!r})[{name!r}].to_numpy()"
        entry = in_file.entry(tensor, name, code)
        entries.append(entry._with_(wanted_imports=wanted) if wanted else entry)
    problems = [*every, *map(NotListed, leaves.problems())]
    return Contents(with_states(found.root, entries), besides, problems)


class _Storages(NamedTuple):
    """The storages of a file by key."""

    file: ListedFile
    records: dict[str, Record]

    def entry(self, tensor: PickledTensor, name: str, code: str) -> WeightEntry:
        if tensor.storage is None:
            return self._wrapper(name, tensor, code)
        made = self._laid(name, code, tensor)
        if tensor.quantizer is None or tensor.problem:
            return made
        return quantized(made, tensor.quantizer, partial(self._laid, name, code))

    def _laid(self, name: str, code: str, tensor: PickledTensor) -> WeightEntry:
        storage, dtype, shape = tensor.storage, tensor.dtype, tensor.shape
        itemsize = stored_dtype(dtype).itemsize
        record = self.records.get(storage.key)
        problem = why_unread(tensor, record)
        first = record.offset if record is not None else 0
        strides = None if tensor.problem else tensor.strides
        source = FileSource(shape, dtype, self.file, first + tensor.offset * itemsize, strides)
        # The size of a view that does not fit its storage is not believed.
        nbytes = 0 if tensor.problem else nbytes_of(source)
        note = ""
        if not problem and storage.nbytes > nbytes:
            note = part_of_storage(math.prod(shape), storage.nbytes, itemsize, "on disk")
        return weight_in(source, name, code, kind=tensor.kind, nbytes=nbytes, note=note, problem=problem)

    def _wrapper(self, name: str, tensor: PickledTensor, code: str) -> WeightEntry:
        """Return a weight that its class computes from tensors with a storage, such as those of torchao."""
        if not tensor.dtype:
            return nothing(name, tensor.kind, code, tensor.problem, self.file.path)
        source = NoSource(self.file.path, identity=(self.file.path, id(tensor)))
        facts = tensor.shape, tensor.dtype, tensor.nbytes
        return WeightEntry(name, tensor.kind, *facts, source, code, tensor.class_name, tensor.problem)

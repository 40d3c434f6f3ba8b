"""Values in files, as they are stored or decoded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.strides import MAX_NDIM, contiguous, num_reached
from tensornp.errors import CopyRequiredError, NoDataError
from tensornp.models.entries.entry import Source, WeightEntry
from tensornp.models.entries.take import VALUES, Array, Ranges, Reads, Shape, taken_by
from tensornp.models.files.source_file import Extent, ListedFile

if TYPE_CHECKING:
    import torch

    from tensornp.core.values.stats.compute import Tally, Tasks


class ReadPlan(NamedTuple):
    """The bytes and pieces of a file that `to_numpy` would read, and the shape of the result.

    The bytes include gaps of up to 4 KiB; scales and other numbers of a codec are not counted.
    """

    nbytes_read: int
    num_reads: int
    shape: tuple[int, ...]


class StoredSource(Source):
    """Values in files: ``elements(ranges)`` returns them decoded, or as integers of their bits.

    Equal sources give the same values of the same files. Tasks of a scan can begin at any element if it
    `is_shared_out`.
    """

    __slots__ = ()
    shape: Shape
    is_shared_out: Any = True
    elements: Any

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Array:
        """Return the values at `index`, in new memory; only their bytes are read."""
        if copy is False:
            raise CopyRequiredError("the values lie in a file; leave copy=False out")
        from tensornp.core.convert.to_numpy import to_numpy
        from tensornp.core.lowlevel.modes import outside_modes

        name, whole = self.dtype_of_values, self.read(index)
        if not whole.ndim and KNOWN[name].values_per_element > 1:
            # One element is several values.
            whole = whole.reshape(1)
        if dtype is None and whole.dtype.name == name:
            whole.flags.writeable = writeable is not False
            return whole
        with outside_modes():
            made: Array = to_numpy(tensor_of(whole, name), writeable=writeable is not False, dtype=dtype)
        return made

    def read(self, index: Any) -> Array:
        """Return the elements at `index`, as `elements` does, in new memory."""
        from tensornp.core.convert.budget import Budget

        taken = taken_by(index, self.shape)
        Budget(None, "take fewer indices").take(math.prod(taken.shape) * stored_dtype(self.dtype_of_values).itemsize)
        return native(np.asarray(self.elements(taken.ranges)).reshape(taken.shape))

    def values(self) -> Any:
        from tensornp.core.values.stored import StoredValues

        name = self.dtype_of_values
        _check_dtype(name)
        return StoredValues(self.shape, name, lambda box: tensor_of(self.read(box), name))

    def tally(self, number: int) -> Tally:
        """Carry one task out; an executor calls it where the same file can be read."""
        from tensornp.core.lowlevel.modes import outside_modes

        tasks = self.tasks()
        return outside_modes(tasks.tally)(next(islice(tasks, number, None)))

    def tasks(self) -> Tasks:
        """Return the tasks that read all values, whose results give what `stats` does."""
        from tensornp.core.lowlevel.modes import outside_modes
        from tensornp.core.values.sources import source_of
        from tensornp.core.values.stats.compute import Tasks

        return Tasks(outside_modes(source_of)(self.values()), "auto", in_depth=True)


@dataclass(slots=True, unsafe_hash=True)
class FileSource(StoredSource):
    """Elements of a file from byte `offset`, `strides` elements apart; None is the order without gaps.

    Their bytes may be in the other order than on this machine (`is_swapped`). A `codec` returns the meaning of the
    elements in some ranges, in float32; equal ones decode equal bits alike. Its `packing` are the elements and bytes of
    a block of the last dimension.
    """

    shape: Shape
    dtype: str
    file: ListedFile
    offset: int
    strides: Shape | None = None
    is_swapped: bool = False
    codec: Any = None

    @property
    def location(self) -> str:
        return self.file.path

    @property
    def dtype_of_values(self) -> str:
        return VALUES if self.codec is not None else self.dtype

    @property
    def extents(self) -> tuple[Extent, ...]:
        nbytes = 0 if 0 in self._stored_shape else num_reached(self._stored_shape, self._steps) * self.item.itemsize
        return (self.file.extent(self.offset, nbytes),)

    @property
    def itemsize(self) -> int:
        """Bytes of an element; 0 if they are compressed, or in blocks."""
        return 0 if self.file.is_packed or self.dtype not in KNOWN else stored_dtype(self.dtype).itemsize

    @property
    def identity(self) -> object:
        if not self.itemsize or 0 in self.shape:
            return id(self)
        # The path, since comparing files takes long.
        return self.file.path, self.offset, self.shape, self.strides, self.dtype, self.codec

    @property
    def codes(self) -> FileSource | None:
        return replace(self, codec=None) if self.dtype in KNOWN and self.codec is not None else None

    @property
    def item(self) -> np.dtype[Any]:
        """The NumPy dtype of an element, or of a block of codes."""
        item = np.dtype((np.void, self._block[1])) if self._block else stored_dtype(self.dtype)
        return item.newbyteorder("S") if self.is_swapped else item

    @property
    def _block(self) -> tuple[int, int] | None:
        return getattr(self.codec, "packing", None)

    @property
    def _stored_shape(self) -> Shape:
        return (*self.shape[:-1], self.shape[-1] // self._block[0]) if self._block else self.shape

    @property
    def _steps(self) -> Shape:
        return self.strides if self.strides is not None else contiguous(self._stored_shape)

    @property
    def is_shared_out(self) -> bool:
        return not self.file.is_packed

    def plan(self, index: Any) -> ReadPlan:
        taken = taken_by(index, self.shape)
        if self.file.is_packed:
            return ReadPlan(self.extents[0].nbytes, 1, taken.shape)
        sizes = [nbytes for _, nbytes, _ in self._reads(taken.ranges).runs()]
        return ReadPlan(sum(sizes), len(sizes), taken.shape)

    def values(self) -> Any:
        """Return a reader of some values at a time; a tensor of a compressed array."""
        if self.file.is_packed:
            return tensor_of(self.read(...), self.dtype_of_values)
        values = StoredSource.values(self)
        if self.codec is not None:
            codes = self.codes.values() if self.codes is not None else None
            return replace(values, quantized=getattr(self.codec, "quantized", ""), codes=codes, scheme=self.codec)
        return values if self.strides is not None else replace(values, read_flat=self._read_flat)

    def elements(self, ranges: Ranges) -> Array:
        with self.file.opened() as there:
            bits = self._reads(ranges).bring(lambda target, at: there.read_into(target, self.offset + at), self.item)
        made = _as_true(bits)
        return made if self.codec is None else self.codec(made, ranges)

    def _read_flat(self, first: int, count: int) -> torch.Tensor:
        made = np.empty(count, self.item)
        with self.file.opened() as there:
            there.read_into(made.view(np.uint8), self.offset + first * made.itemsize)
        return tensor_of(native(_as_true(made)), self.dtype)

    def _reads(self, ranges: Ranges) -> Reads:
        """Return the reads of the elements in some ranges, or of their blocks."""
        if self._block:
            last, size = ranges[-1], self._block[0]
            blocks = range(min(last) // size, max(last) // size + 1) if last else range(0)
            ranges = (*ranges[:-1], blocks)
        itemsize = self.item.itemsize
        return Reads(ranges, tuple(step * itemsize for step in self._steps), itemsize)

    def numbers(self, index: Any) -> Array:
        """Return the values at an index as numbers, for a codec."""
        from tensornp.core.values.blocks import numbers_of

        return numbers_of(native(self.elements(taken_by(index, self.shape).ranges)), self.dtype_of_values)


def _as_true(bits: Array) -> Array:
    """Return bits of bool as bool, since any byte but 0 is True."""
    return np.asarray(bits.view(np.uint8) != 0) if bits.dtype.kind == "b" else bits


def native(bits: Array) -> Array:
    """Return elements in the byte order of this machine, contiguous."""
    return np.ascontiguousarray(bits, bits.dtype.newbyteorder("=")).reshape(bits.shape)


def tensor_of(bits: Array, name: str) -> torch.Tensor:
    """Return a tensor of dtype `name` over native elements, which share memory."""
    from tensornp.core.convert.to_tensor import tensor_over

    _check_dtype(name)
    return tensor_over(bits, name)


def _check_dtype(name: str) -> None:
    import torch

    if not hasattr(torch, name):
        raise NoDataError(f"torch {torch.__version__} has no {name}; install a newer one")


def weight_in(
    source: FileSource, name: str, code: str, *, kind: str = "tensor", nbytes: int | None = None, note: str = "",
    problem: str = "",
) -> WeightEntry:  # fmt: skip
    """Return a weight in a file; `nbytes` defaults to that of the stored elements."""
    shape, dtype = source.shape, source.dtype
    nbytes = nbytes_of(source) if nbytes is None else nbytes
    return WeightEntry(name, kind, shape, dtype, nbytes, source, code, note, problem or why_no_array(shape))


def nbytes_of(source: FileSource) -> int:
    """Return the bytes of the stored elements, those of expanded dimensions once."""
    shape, strides = source.shape, source.strides
    if strides is not None:
        shape = tuple(n if step else min(n, 1) for n, step in zip(shape, strides, strict=True))
    return math.prod(shape) * stored_dtype(source.dtype).itemsize if source.dtype in KNOWN else 0


def why_no_array(shape: tuple[int, ...]) -> str:
    """Return why NumPy has no such shape, or ``""``."""
    if len(shape) > MAX_NDIM:
        return f"it has {len(shape):,} dimensions, and NumPy has {MAX_NDIM} at most"
    # NumPy leaves zeros out as well; an element has at most 16 bytes.
    return "its shape is too large for any memory" if math.prod(filter(None, shape)) >= 2**59 else ""

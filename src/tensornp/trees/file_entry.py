"""A weight that lies in a file, in one piece."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.convert.budget import Budget
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.modes import apart
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.blocks import ReadPart
from tensornp.core.values.decode import stored_dtype
from tensornp.core.values.scan import scan_supply, stats
from tensornp.core.values.stats import TensorStats
from tensornp.core.values.stored import StoredValues, flat_from_boxes
from tensornp.core.values.supply import Supply
from tensornp.core.values.tasks import Tally, Tasks
from tensornp.errors import CopyRequiredError
from tensornp.trees.entry import Array, Extent, WeightEntry
from tensornp.trees.names import shown_name
from tensornp.trees.selection import Selection, contiguous, select
from tensornp.trees.source_file import Reader, Source


class ReadPlan(NamedTuple):
    """What `to_numpy` would read of a file.

    Attributes
    ----------
    nbytes_read : int
        Bytes that are read, with gaps of up to 4 KiB between those that are wanted.
    num_reads : int
        Pieces of the file.
    shape : tuple of int
        Of what the index takes, in elements as they are stored.
    """

    nbytes_read: int
    num_reads: int
    shape: tuple[int, ...]


class FileEntry(WeightEntry):
    """Elements that lie `strides` elements apart, from `offset` on; without these, in the order of their indices.

    With `is_swapped`, the bytes of each are in the order that this machine does not have.
    """

    __slots__ = ("_file", "_is_swapped", "_offset", "_strides")
    requires_grad = None
    _num_threads: int | None = None

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        code: str,
        file: Source,
        offset: int,
        strides: tuple[int, ...] | None = None,
        *,
        is_swapped: bool = False,
    ) -> None:
        super().__init__(name, "tensor", shape, dtype, 0, code)
        self._file, self._offset, self._is_swapped = file, offset, is_swapped
        self._strides = None if strides is None or is_contiguous(shape, strides) else strides
        if dtype in KNOWN and not hasattr(torch, dtype):
            self.problem = f"torch {torch.__version__} has no {dtype}; install a newer one"
        if dtype in KNOWN:
            steps = strides if strides is not None else (1,) * len(shape)
            stored = math.prod(n if step else min(n, 1) for n, step in zip(shape, steps, strict=True))
            self.nbytes = stored * stored_dtype(dtype).itemsize

    def _begin_as(self, other: FileEntry) -> None:
        """Begin as the same elements of the same file, which mean something else here."""
        assert other.shape is not None
        FileEntry.__init__(
            self, other.name, other.shape, other.dtype, other.code, other._file, other._offset, other._strides,
            is_swapped=other._is_swapped,
        )  # fmt: skip
        self.kind, self.nbytes, self.problem = other.kind, other.nbytes, other.problem

    @property
    def location(self) -> str:
        """The path of its file."""
        return self._file.path

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where its bytes lie; of one with gaps, from the first to the last."""
        runs = list(self._select(...).runs()) if self._strides is not None else []
        nbytes = max((run.offset + run.nbytes for run in runs), default=0) if runs else self.nbytes
        return (Extent(self._file.path, self._offset, nbytes),)

    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read; BadRequestError for an index that is none, or out of bounds."""
        self.check_readable()
        selection = self._select(index)
        runs = [run.nbytes for run in selection.runs()]
        return ReadPlan(sum(runs), len(runs), selection.result_shape)

    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
    ) -> Array:
        """Return the values at `index`, in new memory; only their bytes are read."""
        if copy is False:
            raise CopyRequiredError(f"the values of {shown_name(self.name)} lie in a file; leave copy=False out")
        self.check_readable()
        return array_of(self._read(index), self.dtype_of_values, writeable=writeable is not False, dtype=dtype)

    def _read(self, index: Any) -> Array:
        """Return the elements at `index`, as they are stored."""
        selection = self._select(index)
        Budget(None).take(math.prod(selection.counts) * self._bits.itemsize)
        with self._file.opened() as there:
            return selection.read(lambda target, first: there.read_into(target, self._offset + first), self._bits)

    def values(self) -> StoredValues:
        """Return what reads the values some at a time."""
        self.check_readable()
        assert self.shape is not None
        name = self.dtype_of_values
        read_flat = self._read_flat if self._strides is None else flat_from_boxes(self.shape, self._read_native)
        return StoredValues(self.shape, name, lambda box: tensor_of(self._read_native(box), name), read_flat)

    def _read_native(self, index: Any) -> Array:
        return _native(self._read(index))

    def _read_flat(self, first: int, count: int) -> Array:
        """Return so many elements from one on, in the order of their indices."""
        with self._file.opened() as there:
            (part,) = self._supply(there).parts
            assert isinstance(part, ReadPart)
            return _native(part.read(first, count))

    def stats(self) -> TensorStats:
        """Return the statistics of all values, read block by block."""
        if not self._is_dense:
            return stats(self.values())
        self.check_readable()
        with self._file.opened() as there:
            return _stats_of(self._supply(there), self._num_threads)

    def num_tasks(self) -> int:
        """Return in how many tasks of bounded size all values are read; 0 of one that no other process reads."""
        return _num_tasks(self._supply(None)) if self._is_dense else 0

    def tally(self, number: int) -> Tally:
        """Return what the task of that number finds."""
        self.check_readable()
        with self._file.opened() as there:
            return _tally(self._supply(there), number)

    def put_together(self, tallies: Iterable[Tally]) -> TensorStats:
        """Return the statistics of all tasks, as `stats` would."""
        return _put_together(self._supply(None), tallies)

    def _supply(self, there: Reader | None) -> Supply:
        bits = self._bits

        def read(first: int, count: int) -> Array:
            assert there is not None
            made = np.empty(count, bits)
            there.read_into(made.view(np.uint8), self._offset + first * bits.itemsize)
            return made

        assert self.shape is not None
        # Flat, as a tensor without gaps is read: the same blocks give the same bits.
        return Supply((ReadPart(read, (self.numel,), self.dtype),), self.dtype, self.shape)

    @property
    def _is_dense(self) -> bool:
        """Whether each byte from the first to the last belongs to one element, in whatever order they lie."""
        assert self.shape is not None
        return self._strides is None or is_dense(self.shape, self._strides)

    @property
    def _bits(self) -> np.dtype[Any]:
        bits = stored_dtype(self.dtype)
        return bits.newbyteorder("S") if self._is_swapped else bits

    def _select(self, index: Any) -> Selection:
        assert self.shape is not None
        return select(index, self.shape, self._bits.itemsize, self._strides)


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether the elements lie in the order of their indices, without gaps."""
    steps = zip(shape, strides, contiguous(shape), strict=True)
    return 0 in shape or all(step == wanted for n, step, wanted in steps if n > 1)


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether the elements lie without gaps, and each once, in some order."""
    steps = sorted(((step, n) for n, step in zip(shape, strides, strict=True) if n > 1), reverse=True)
    return is_contiguous(tuple(n for _, n in steps), tuple(step for step, _ in steps))


@apart
def array_of(bits: Array, name: str, *, writeable: bool, dtype: object) -> Array:
    """Return what the elements of dtype `name` are as an array, in memory that nobody else has."""
    whole = _native(bits)
    if dtype is None and whole.dtype.name == name:
        # A byte that is neither 0 nor 1 is no bool that NumPy can count.
        array = np.asarray(whole.view(np.uint8) != 0) if name == "bool" else whole
        array.flags.writeable = writeable
        return array
    made: Array = to_numpy(tensor_of(whole, name), writeable=writeable, dtype=dtype)
    return made


def tensor_of(bits: Array, name: str) -> torch.Tensor:
    """Return elements of dtype `name`, contiguous and in native byte order, as a tensor in their memory."""
    flat = np.ascontiguousarray(bits).reshape(-1).view(np.uint8)
    return torch.from_numpy(flat).view(getattr(torch, name)).reshape(bits.shape)


def _native(bits: Array) -> Array:
    """Return elements in the byte order of this machine, contiguous."""
    return np.ascontiguousarray(bits, bits.dtype.newbyteorder("=")).reshape(bits.shape)


def _num_tasks(supply: Supply) -> int:
    return sum(1 for _ in Tasks(supply, "auto"))


@apart
def _tally(supply: Supply, number: int) -> Tally:
    tasks = Tasks(supply, "auto")
    return tasks.tally(next(islice(tasks, number, None)), in_place=False)


def _put_together(supply: Supply, tallies: Iterable[Tally]) -> TensorStats:
    with np.errstate(all="ignore"):
        return Tasks(supply, "auto").result(tallies)


@apart
def _stats_of(supply: Supply, num_threads: int | None) -> TensorStats:
    return scan_supply(supply, num_threads=num_threads)

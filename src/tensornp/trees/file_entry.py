"""A weight that lies in a file, in one piece."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.modes import apart
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.decode import stored_dtype
from tensornp.core.values.scan import stats
from tensornp.core.values.stats import TensorStats
from tensornp.core.values.stored import StoredValues, flat_from_boxes
from tensornp.core.values.supply import Supply, supply_of
from tensornp.core.values.tasks import Tally, Tasks
from tensornp.errors import CopyRequiredError
from tensornp.trees.entry import Array, Extent, WeightEntry
from tensornp.trees.names import shown_name
from tensornp.trees.selection import Selection, contiguous, select
from tensornp.trees.source_file import SourceFile


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
    """Elements that lie `strides` elements apart, from `offset` on; without these, in the order of their indices."""

    __slots__ = ("_file", "_offset", "_strides")
    requires_grad = None

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        code: str,
        file: SourceFile,
        offset: int,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(name, "tensor", shape, dtype, 0, code)
        self._file, self._offset = file, offset
        self._strides = None if strides is None or is_contiguous(shape, strides) else strides
        if dtype in KNOWN and not hasattr(torch, dtype):
            self.problem = f"torch {torch.__version__} has no {dtype}; install a newer one"
        if dtype in KNOWN:
            steps = strides if strides is not None else (1,) * len(shape)
            stored = math.prod(n if step else min(n, 1) for n, step in zip(shape, steps, strict=True))
            self.nbytes = stored * stored_dtype(dtype).itemsize

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
        return _array_of(self._read(index), self.dtype, writeable=writeable is not False, dtype=dtype)

    def values(self) -> StoredValues:
        """Return what reads the values some at a time."""
        self.check_readable()
        assert self.shape is not None
        read_flat = self._read_flat if self._strides is None else flat_from_boxes(self.shape, self._read)
        return StoredValues(self.shape, self.dtype, lambda box: _tensor_of(self._read(box), self.dtype), read_flat)

    def stats(self) -> TensorStats:
        """Return the statistics of all values, read block by block."""
        with self._file.opened():
            return stats(self.values())

    def num_tasks(self) -> int:
        """Return in how many tasks of bounded size all values are read."""
        return _num_tasks(self._supply())

    def tally(self, number: int) -> Tally:
        """Return what the task of that number finds; of no elements too, of a file that has not changed alone."""
        with self._file.opened():
            return _tally(self._supply(), number)

    def put_together(self, tallies: Iterable[Tally]) -> TensorStats:
        """Return the statistics of all tasks, as `stats` would."""
        return _put_together(self._supply(), tallies)

    def _supply(self) -> Supply:
        return supply_of(self.values())

    def _read(self, index: Any) -> Array:
        """Return the bits of the elements at `index`, in new memory."""
        selection = self._select(index)
        with self._file.opened() as there:
            return selection.read(lambda target, first: there.read_into(target, self._offset + first), self._bits)

    def _read_flat(self, first: int, count: int) -> Array:
        made = np.empty(count, self._bits)
        with self._file.opened() as there:
            there.read_into(made.view(np.uint8), self._offset + first * self._bits.itemsize)
        return made

    @property
    def _bits(self) -> np.dtype[Any]:
        return stored_dtype(self.dtype)

    def _select(self, index: Any) -> Selection:
        assert self.shape is not None
        return select(index, self.shape, self._bits.itemsize, self._strides)


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether the elements lie in the order of their indices, without gaps."""
    steps = zip(shape, strides, contiguous(shape), strict=True)
    return 0 in shape or all(step == wanted for n, step, wanted in steps if n > 1)


@apart
def _array_of(bits: Array, name: str, *, writeable: bool, dtype: object) -> Array:
    """Return what the elements of dtype `name` are as an array, in memory that nobody else has."""
    whole = np.ascontiguousarray(bits).reshape(bits.shape)
    if dtype is None and whole.dtype.name == name:
        # A byte that is neither 0 nor 1 is no bool that NumPy can count.
        array = np.asarray(whole.view(np.uint8) != 0) if name == "bool" else whole
        array.flags.writeable = writeable
        return array
    made: Array = to_numpy(_tensor_of(whole, name), writeable=writeable, dtype=dtype)
    return made


def _tensor_of(bits: Array, name: str) -> torch.Tensor:
    """Return elements of dtype `name` as a tensor in the same memory."""
    flat = np.ascontiguousarray(bits).reshape(-1).view(np.uint8)
    return torch.from_numpy(flat).view(getattr(torch, name)).reshape(bits.shape)


def _num_tasks(supply: Supply) -> int:
    return sum(1 for _ in Tasks(supply, "auto"))


@apart
def _tally(supply: Supply, number: int) -> Tally:
    tasks = Tasks(supply, "auto")
    return tasks.tally(next(islice(tasks, number, None)), in_place=False)


def _put_together(supply: Supply, tallies: Iterable[Tally]) -> TensorStats:
    with np.errstate(all="ignore"):
        return Tasks(supply, "auto").result(tallies)

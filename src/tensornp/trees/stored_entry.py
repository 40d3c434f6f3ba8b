"""A weight whose values lie in files: how they become arrays and statistics, whatever brings their bits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.modes import apart
from tensornp.core.values.blocks import ReadPart
from tensornp.core.values.decode import stored_dtype
from tensornp.core.values.scan import scan_supply
from tensornp.core.values.stats import TensorStats
from tensornp.core.values.supply import Supply
from tensornp.core.values.tasks import Tally, Tasks
from tensornp.errors import CopyRequiredError
from tensornp.trees.entry import Array, WeightEntry
from tensornp.trees.names import shown_name
from tensornp.trees.selection import Selection, select


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


class Reader(Protocol):
    """Brings the elements of one entry from its open files, as integers of their bits or as NumPy's own numbers."""

    def bits(self, selection: Selection) -> Array:
        """Return those that a selection takes."""

    def flat(self, first: int, count: int) -> Array:
        """Return so many from one on, in the order of their indices, in one dimension."""


class StoredEntry(WeightEntry):
    """A weight that lies in files, which are opened for as long as one reads."""

    __slots__ = ()
    requires_grad = None

    @abstractmethod
    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read; BadRequestError for an index that is none, or out of bounds."""

    @abstractmethod
    def opened(self) -> AbstractContextManager[Reader]:
        """Open its files for some reads; ChangedFileError if they are not as they were listed."""

    @property
    @abstractmethod
    def is_shared_out(self) -> bool:
        """Whether any block of it can be read by itself, so that a scan takes it in tasks of bounded size."""

    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
    ) -> Array:
        """Return the values at `index`, in new memory; only their bytes are read."""
        if copy is False:
            raise CopyRequiredError(f"the values of {shown_name(self.name)} lie in a file; leave copy=False out")
        self.check_readable()
        selection = self.select(index)
        with self.opened() as reader:
            bits = reader.bits(selection)
        return _array_of(bits, self.dtype, writeable=writeable is not False, dtype=dtype)

    def stats(self) -> TensorStats:
        """Return the statistics of all values, read block by block."""
        self.check_readable()
        with self.opened() as reader:
            return _stats_of(self._supply(reader), None if self.is_shared_out else 1)

    def num_tasks(self) -> int:
        """Return in how many tasks of bounded size all values are read; 0 of one that no other process reads."""
        return _num_tasks(self._supply(None)) if self.is_shared_out else 0

    def tally(self, number: int) -> Tally:
        """Return what the task of that number finds."""
        self.check_readable()
        with self.opened() as reader:
            return _tally(self._supply(reader), number)

    def put_together(self, tallies: Iterable[Tally]) -> TensorStats:
        """Return the statistics of all tasks, as `stats` would."""
        return _put_together(self._supply(None), tallies)

    def select(self, index: Any) -> Selection:
        """Return what an index takes of its elements, were they to lie in the order of their indices."""
        assert self.shape is not None
        return select(index, self.shape, self.bits_dtype.itemsize)

    @property
    def bits_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype by which its elements are read."""
        return stored_dtype(self.dtype)

    def _supply(self, reader: Reader | None) -> Supply:
        def read(first: int, count: int) -> Array:
            assert reader is not None
            return reader.flat(first, count)

        assert self.shape is not None
        # Flat, as a tensor without gaps is read: the same blocks give the same bits.
        return Supply((ReadPart(read, (self.numel,), self.dtype),), self.dtype, self.shape)


@apart
def _array_of(bits: Array, name: str, *, writeable: bool, dtype: object) -> Array:
    """Return what the elements of dtype `name` are as an array, in memory that nobody else has."""
    whole = np.ascontiguousarray(bits).reshape(bits.shape)
    if dtype is None and whole.dtype.name == name:
        # A byte that is neither 0 nor 1 is no bool that NumPy can count.
        array = np.asarray(whole.view(np.uint8) != 0) if name == "bool" else whole
        array.flags.writeable = writeable
        return array
    own = torch.from_numpy(whole.reshape(-1).view(np.uint8)).view(getattr(torch, name))
    made: Array = to_numpy(own.reshape(bits.shape), writeable=writeable, dtype=dtype)
    return made


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

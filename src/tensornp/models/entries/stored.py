"""A weight whose values lie in files: how they become arrays and statistics, whatever brings their bits."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.convert.budget import Budget
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.float_errors import ignoring_float_errors
from tensornp.core.lowlevel.modes import apart
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.reading.blocks import ReadPart
from tensornp.core.values.reading.decode import stored_dtype
from tensornp.core.values.reading.stored import StoredValues
from tensornp.core.values.reading.supply import Supply
from tensornp.core.values.stats.compute import scan_supply
from tensornp.core.values.stats.record import TensorStats
from tensornp.core.values.stats.tasks import Tally, Tasks
from tensornp.errors import CopyRequiredError, TooLargeError
from tensornp.models.entries.entry import Array, WeightEntry
from tensornp.models.names.quoted import shown_name
from tensornp.models.reading.selection import Selection, select
from tensornp.models.reading.stats_cache import KEPT


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


class StoredEntry(WeightEntry):
    """A weight that lies in files, which are opened for as long as one reads."""

    __slots__ = ()
    requires_grad = None

    @abstractmethod
    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read; BadRequestError for an index that is none, or out of bounds."""

    @property
    @abstractmethod
    def is_shared_out(self) -> bool:
        """Whether any block of it can be read by itself, so that a scan takes it in tasks of bounded size."""

    @abstractmethod
    def _opened(self) -> AbstractContextManager[Any]:
        """Open its files for some reads; ChangedFileError if they are not as they were listed."""

    @abstractmethod
    def _bits_at(self, opened: Any, selection: Selection) -> Array:
        """Return the elements that a selection takes, as integers of their bits or as NumPy's own numbers."""

    @abstractmethod
    def _flat(self, opened: Any, first: int, count: int) -> Array:
        """Return so many elements from one on, in the order in which `stats` reads them."""

    def _meant(self, bits: Array) -> Array:
        """Return the elements that `_bits_at` and `_flat` bring as they are meant: any byte but 0 is True."""
        return np.asarray(bits.view(np.uint8) != 0) if bits.dtype.kind == "b" else bits

    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
    ) -> Array:
        """Return the values at `index`, in new memory; only their bytes are read."""
        if copy is False:
            raise CopyRequiredError(f"the values of {shown_name(self.name)} lie in a file; leave copy=False out")
        self.check_readable()
        return _array_of(self._read(index), self.dtype_of_values, writeable=writeable is not False, dtype=dtype)

    def values(self) -> Any:
        """Return what reads the values some at a time."""
        self.check_readable()
        assert self.shape is not None
        name = self.dtype_of_values
        return StoredValues(
            self.shape, name, lambda box: tensor_of(native(self._read(box)), name), self._reader_in_order()
        )

    def stats(self) -> TensorStats:
        """Return the statistics of all values, read block by block."""
        self.check_readable()
        if (kept := self.kept()) is not None:
            return kept
        with self._opened() as opened:
            found = _stats_of(self._supply(opened), None if self.is_shared_out else 1)
        return self._keep(found)

    def is_kept(self) -> bool:
        """Return whether an earlier reading has brought its statistics."""
        return KEPT.get(self.values_key, self._paths()) is not None

    def kept(self) -> TensorStats | None:
        """Return the statistics that an earlier reading has brought, of the same files; ChangedFileError for others."""
        found = KEPT.get(self.values_key, self._paths())
        if found is not None:
            self._check_unchanged()
        return found

    def num_tasks(self) -> int:
        """Return in how many tasks of bounded size all values are read; 0 of one that no other process reads."""
        return _num_tasks(self._supply(None)) if self.is_shared_out else 0

    def tally(self, number: int) -> Tally:
        """Return what the task of that number finds."""
        self.check_readable()
        with self._opened() as opened:
            return _tally(self._supply(opened), number)

    def put_together(self, tallies: Iterable[Tally]) -> TensorStats:
        """Return the statistics of all tasks, as `stats` would."""
        return self._keep(_put_together(self._supply(None), tallies))

    @property
    @abstractmethod
    def values_key(self) -> Hashable:
        """What is equal for weights of the same values in the same files, as these were when they were listed."""

    def give_back(self) -> None:
        """Let the system drop what was read of it from its cache: of a scan, nothing is read again."""

    def select(self, index: Any) -> Selection:
        """Return what an index takes of its elements, were they to lie in the order of their indices."""
        assert self.shape is not None
        return select(index, self.shape, self.bits_dtype.itemsize)

    @property
    def bits_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype by which its elements are read."""
        return stored_dtype(self.dtype)

    def _read(self, index: Any) -> Array:
        """Return the elements at `index`, as they are stored, in new memory."""
        selection = self.select(index)
        Budget(None).take(math.prod(selection.counts) * stored_dtype(self.dtype_of_values).itemsize)
        try:
            with self._opened() as opened:
                return self._meant(self._bits_at(opened, selection))
        except MemoryError as error:
            if isinstance(error, TooLargeError):
                raise
            # The process may have less than the machine.
            what = f"{shown_name(self.name)} at shape {selection.counts}"
            raise TooLargeError(f"there is no memory for {what}; take fewer indices") from None

    def _check_unchanged(self) -> None:
        """Raise ChangedFileError if a file is not as it was listed."""
        with self._opened():
            pass

    def _keep(self, found: TensorStats) -> TensorStats:
        KEPT.keep(self.values_key, found, self._paths())
        return found

    def _paths(self) -> set[str]:
        """Return the files that its values are read from."""
        return {extent.path for extent in self.extents}

    def _reader_in_order(self) -> Callable[[int, int], Array]:
        """Return what brings so many elements from one on, in the order of their indices."""
        return self._in_order

    def _in_order(self, first: int, count: int) -> Array:
        """Return so many elements from one on, in the order of their indices."""
        with self._opened() as opened:
            return native(self._meant(self._flat(opened, first, count)))

    def _supply(self, opened: Any) -> Supply:
        def read(first: int, count: int) -> Array:
            return self._meant(self._flat(opened, first, count))

        assert self.shape is not None
        name = self.dtype_of_values
        # Flat, as a tensor without gaps is read: the same blocks give the same bits.
        return Supply((ReadPart(read, (self.numel,), name),), name, self.shape, order=self._order())

    def _order(self) -> tuple[int, ...] | None:
        """Return the dimensions from the widest stride to the narrowest, as `_flat` reads them."""
        return tuple(range(len(self.shape or ())))


def tensor_of(bits: Array, name: str) -> torch.Tensor:
    """Return elements of dtype `name`, contiguous and in native byte order, as a tensor in their memory."""
    flat = np.ascontiguousarray(bits).reshape(-1).view(np.uint8)
    return torch.from_numpy(flat).view(getattr(torch, name)).reshape(bits.shape)


def native(bits: Array) -> Array:
    """Return elements in the byte order of this machine, contiguous."""
    return np.ascontiguousarray(bits, bits.dtype.newbyteorder("=")).reshape(bits.shape)


@apart
def _array_of(bits: Array, name: str, *, writeable: bool, dtype: object) -> Array:
    """Return what the elements of dtype `name` are as an array, in memory that nobody else has."""
    whole = native(bits)
    if not whole.ndim and KNOWN[name].values_per_element > 1:
        # One element is several values.
        whole = whole.reshape(1)
    if dtype is None and whole.dtype.name == name:
        whole.flags.writeable = writeable
        return whole
    made: Array = to_numpy(tensor_of(whole, name), writeable=writeable, dtype=dtype)
    return made


def _tasks(supply: Supply) -> Tasks:
    return Tasks(supply, "auto", in_depth=True)


def _num_tasks(supply: Supply) -> int:
    return sum(1 for _ in _tasks(supply))


@apart
def _tally(supply: Supply, number: int) -> Tally:
    tasks = _tasks(supply)
    return tasks.tally(next(islice(tasks, number, None)), in_place=False)


@ignoring_float_errors
def _put_together(supply: Supply, tallies: Iterable[Tally]) -> TensorStats:
    return _tasks(supply).result(tallies)


@apart
def _stats_of(supply: Supply, num_threads: int | None) -> TensorStats:
    return scan_supply(supply, num_threads=num_threads, in_depth=True)

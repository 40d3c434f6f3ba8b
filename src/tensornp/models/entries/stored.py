"""Convert values in files to arrays and statistics."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.errors import CopyRequiredError, TooLargeError
from tensornp.models.entries.source import Source
from tensornp.models.reading.take import Array, Ranges, Shape, taken_by

if TYPE_CHECKING:
    import torch

    from tensornp.core.values.sources import Source as Values
    from tensornp.core.values.stats.compute import Tally, Tasks
    from tensornp.core.values.stats.record import TensorStats


class ReadPlan(NamedTuple):
    """The bytes of a file that `to_numpy` would read.

    Attributes
    ----------
    nbytes_read : int
        ListedFile that are read, with gaps of up to 4 KiB between those that are wanted.
    num_reads : int
        Pieces of the file.
    shape : tuple of int
        Shape of the elements that the index takes, as they are stored.
    """

    nbytes_read: int
    num_reads: int
    shape: tuple[int, ...]


class StoredSource(Source):
    """Values in files; equal sources give the same values of the same files."""

    __slots__ = ()
    shape: Shape

    @property
    @abstractmethod
    def is_shared_out(self) -> bool:
        """Return whether blocks can be read alone, for tasks of bounded size."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Any]:
        """Open the files for some reads; ChangedFileError if one has changed."""

    @abstractmethod
    def elements(self, opened: Any, ranges: Ranges) -> Array:
        """Return the decoded elements in some ranges, or integers of their bits."""

    @abstractmethod
    def row(self, opened: Any, first: int, count: int) -> Array:
        """Return `count` elements from `first` on, in the order of statistics."""

    @property
    def order(self) -> tuple[int, ...] | None:
        """The dimensions from the widest stride to the narrowest, as `row` reads them."""
        return tuple(range(len(self.shape)))

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Array:
        """Return the values at `index`, in new memory; only their bytes are read."""
        if copy is False:
            raise CopyRequiredError("the values lie in a file; leave copy=False out")
        from tensornp.core.lowlevel.modes import outside_modes

        made = native(self.read(index))
        return outside_modes(_array_of)(made, self.dtype_of_values, writeable=writeable is not False, dtype=dtype)

    def values(self) -> Any:
        """Return a reader of the values in blocks."""
        from tensornp.core.values.stored import StoredValues

        name = self.dtype_of_values
        return StoredValues(
            self.shape, name, lambda box: tensor_of(native(self.read(box)), name), self.reader_in_order(),
            is_sequential=not self.is_shared_out,
            reading=self._reading_in_order if self._can_be_held_open else None,
        )  # fmt: skip

    def stats(self) -> TensorStats:
        """Return the statistics of all values, read block by block."""
        from tensornp.core.lowlevel.modes import outside_modes
        from tensornp.core.values.stats.compute import scan_source

        num_threads = None if self.is_shared_out else 1
        with self.reading() as opened:
            return outside_modes(scan_source)(self.numbers_read(opened), num_threads=num_threads, in_depth=True)

    @property
    def key(self) -> object:
        """Return the source, which is equal for the same values in the same files."""
        return self

    @property
    def num_tasks(self) -> int:
        """Return the number of tasks that read all values, 0 without shared reads."""
        return sum(1 for _ in self._tasks(None)) if self.is_shared_out else 0

    def tally(self, number: int) -> Tally:
        """Return the result of one task."""
        from tensornp.core.lowlevel.modes import outside_modes

        with self.reading() as opened:
            tasks = self._tasks(opened)
            return outside_modes(tasks.tally)(next(islice(tasks, number, None)))

    @np.errstate(all="ignore")
    def put_together(self, tallies: Iterable[Tally]) -> TensorStats:
        """Return the statistics of all tasks, as `stats` would."""
        return self._tasks(None).result(tallies)

    def _tasks(self, opened: Any) -> Tasks:
        from tensornp.core.values.stats.compute import Tasks

        return Tasks(self.numbers_read(opened), "auto", in_depth=True)

    def read(self, index: Any) -> Array:
        """Return the elements at `index`, as `elements` does, in new memory."""
        from tensornp.core.convert.budget import Budget

        taken = taken_by(index, self.shape)
        Budget(None, "take fewer indices").take(math.prod(taken.shape) * stored_dtype(self.dtype_of_values).itemsize)
        try:
            with self.reading() as opened:
                return self.elements(opened, taken.ranges).reshape(taken.shape)
        except MemoryError as error:
            if isinstance(error, TooLargeError):
                raise
            # The process may have less than the machine.
            raise TooLargeError(f"there is no memory for shape {taken.shape}; take fewer indices") from None

    def reader_in_order(self) -> Callable[[int, int], Array]:
        """Return a function that reads elements in the order of their indices."""

        def read(first: int, count: int) -> Array:
            with self.reading() as opened:
                return native(self.row(opened, first, count))

        return read

    @property
    def _can_be_held_open(self) -> bool:
        """Whether `row` reads in the order of the indices, from any element on."""
        return self.is_shared_out and self.order == tuple(range(len(self.shape)))

    @contextmanager
    def _reading_in_order(self) -> Iterator[Callable[[int, int], Array]]:
        with self.reading() as opened:
            yield lambda first, count: native(self.row(opened, first, count))

    def numbers_read(self, opened: Any) -> Values:
        """Return the source of statistics."""
        from tensornp.core.values.blocks import part_of_reader
        from tensornp.core.values.sources import Source as Values

        name = self.dtype_of_values
        # Flat, as a contiguous tensor is read: the same blocks give the same bits.
        part = part_of_reader(functools.partial(self.row, opened), (math.prod(self.shape),), name)
        return Values((part,), name, self.shape, order=self.order)


def native(bits: Array) -> Array:
    """Return elements in the byte order of this machine, contiguous."""
    return np.ascontiguousarray(bits, bits.dtype.newbyteorder("=")).reshape(bits.shape)


def tensor_of(bits: Array, name: str) -> torch.Tensor:
    """Return a tensor of dtype `name` over native elements, which share memory."""
    import torch

    flat = np.ascontiguousarray(bits).reshape(-1).view(np.uint8)
    return torch.from_numpy(flat).view(getattr(torch, name)).reshape(bits.shape)


def _array_of(whole: Array, name: str, *, writeable: bool, dtype: object) -> Array:
    """Return native elements of dtype `name` as an array over their own memory."""
    from tensornp.core.convert.to_numpy import to_numpy

    if not whole.ndim and KNOWN[name].values_per_element > 1:
        # One element is several values.
        whole = whole.reshape(1)
    if dtype is None and whole.dtype.name == name:
        whole.flags.writeable = writeable
        return whole
    made: Array = to_numpy(tensor_of(whole, name), writeable=writeable, dtype=dtype)
    return made

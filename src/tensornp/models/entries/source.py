"""Sources of values: in memory, in files, or made on request."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.errors import CopyRequiredError, NoDataError, TooLargeError
from tensornp.models.entries.take import Array, Shape, taken_by

_MAX_INNER, _MAX_BOX = 2**16, 2**20
"""Elements of the innermost dimensions, and of a box, that are read together where elements lie in another order."""

if TYPE_CHECKING:
    import torch

    from tensornp.core.values.stats.compute import Tally, Tasks
    from tensornp.core.values.stats.record import TensorStats


class Source:
    """The values of a weight; this class alone has none, and its methods are never called.

    `extents` are bytes in files, and `lies` is the place of elements with bytes of their own. `held` is the tensor or
    array in memory, `codes` the source of stored codes, and `values` returns a tensor or a reader of the values.
    """

    __slots__ = ()
    location: Any = ""
    dtype_of_values: Any = ""
    extents: Any = ()
    lies: Any = None
    held: Any = None
    requires_grad: Any = None
    codes: Any = None
    plan: Any
    to_numpy: Any
    values: Any
    stats: Any

    @property
    def identity(self) -> object:
        """A key that is equal for names of the same elements."""
        return id(self)


class NoSource(Source):
    """No values; `consists_of` are the weights in the file that a class computes them from."""

    __slots__ = ("consists_of", "identity", "location")
    identity: object

    def __init__(self, location: str = "", *, identity: object = None, consists_of: tuple[Any, ...] = ()) -> None:
        self.location, self.consists_of = location, consists_of
        self.identity = identity or id(self)


class Requested(Source):
    """Values of a weight that `get` returns at each request, so that no row holds them.

    A weight that a module computes has a `holder`, the expression of the module, and `again`, which returns the weight
    for the module; its values are always copied.
    """

    __slots__ = ("again", "get", "holder", "identity", "location", "requires_grad")
    identity: object

    def __init__(
        self, get: Callable[[], Any], location: str, requires_grad: bool | None, *, identity: object = None,
        holder: str = "", again: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self.get, self.location, self.requires_grad = get, location, requires_grad
        self.identity, self.holder, self.again = identity or id(self), holder, again

    def _found(self) -> Any:
        found = self.get()
        found._check_readable()
        return found._source

    def plan(self, index: Any) -> Any:
        return self._found().plan(index, copy=True) if self.again else self._found().plan(index)

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        if self.again and copy is False:
            raise CopyRequiredError("the values are computed at each request; leave copy=False out")
        return self._found().to_numpy(index, copy=True if self.again else copy, writeable=writeable, dtype=dtype)

    def values(self) -> Any:
        return self._found().values()

    def stats(self) -> Any:
        return self._found().stats()


class ReadPlan(NamedTuple):
    """The bytes and pieces of a file that `to_numpy` would read, and the shape of the result.

    The bytes include gaps of up to 4 KiB; scales and other numbers of a codec are not counted.
    """

    nbytes_read: int
    num_reads: int
    shape: tuple[int, ...]


class StoredSource(Source):
    """Values in files; equal sources give the same values of the same files.

    Tasks of a scan can begin at any element if it `is_shared_out`. `order` has the dimensions by falling stride; None
    if there are gaps. `reading()` opens the files, and ``elements(opened, ranges)`` returns decoded elements or
    integers of their bits.
    """

    __slots__ = ()
    shape: Shape
    is_shared_out: Any = True
    reading: Any
    elements: Any

    @property
    def order(self) -> tuple[int, ...] | None:
        return tuple(range(len(self.shape)))

    def to_numpy(self, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Array:
        """Return the values at `index`, in new memory; only their bytes are read."""
        if copy is False:
            raise CopyRequiredError("the values lie in a file; leave copy=False out")
        from tensornp.core.lowlevel.modes import outside_modes

        made = native(self.read(index))
        return outside_modes(_array_of)(made, self.dtype_of_values, writeable=writeable is not False, dtype=dtype)

    def read(self, index: Any) -> Array:
        """Return the elements at `index`, as `elements` does, in new memory."""
        from tensornp.core.convert.budget import Budget

        taken = taken_by(index, self.shape)
        Budget(None, "take fewer indices").take(math.prod(taken.shape) * stored_dtype(self.dtype_of_values).itemsize)
        try:
            with self.reading() as opened:
                return np.asarray(self.elements(opened, taken.ranges)).reshape(taken.shape)
        except MemoryError as error:
            if isinstance(error, TooLargeError):
                raise
            # The process may have less than the machine.
            raise TooLargeError(f"there is no memory for shape {taken.shape}; take fewer indices") from None

    def row_reader(self, opened: Any) -> Callable[[int, int], Array]:
        """Return a function that reads elements in the order of the file, by the first one and their number."""
        order = self.order or tuple(range(len(self.shape)))

        def read_box(box: tuple[slice, ...]) -> Array:
            ranges = {axis: range(one.start, one.stop) for axis, one in zip(order, box, strict=True)}
            found: Array = self.elements(opened, tuple(ranges[axis] for axis in range(len(order))))
            return native(found.transpose(order))

        return _flat_from_boxes(tuple(self.shape[axis] for axis in order), read_box)

    def values(self) -> Any:
        from tensornp.core.values.stored import StoredValues

        name = self.dtype_of_values
        _torch_dtype(name)
        is_in_order = self.order == tuple(range(len(self.shape)))

        @contextmanager
        def held_open() -> Iterator[Callable[[int, int], Array]]:
            with self.reading() as opened:
                yield self.row_reader(opened)

        def flat(first: int, count: int) -> Array:
            with held_open() as read:
                return read(first, count)

        return StoredValues(
            self.shape, name, lambda box: tensor_of(native(self.read(box)), name),
            flat if is_in_order else None, is_sequential=not self.is_shared_out,
            reading=held_open if is_in_order else None,
        )  # fmt: skip

    def stats(self) -> TensorStats:
        from tensornp.core.lowlevel.modes import outside_modes
        from tensornp.core.values.stats.compute import scan_source

        num_threads = None if self.is_shared_out else 1
        with self.reading() as opened:
            return outside_modes(scan_source)(self._numbers(opened), num_threads=num_threads, in_depth=True)

    @property
    def num_tasks(self) -> int:
        """The number of tasks that read all values, 0 without shared reads."""
        return sum(1 for _ in self._tasks(None)) if self.is_shared_out else 0

    def tally(self, number: int) -> Tally:
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

        return Tasks(self._numbers(opened), "auto", in_depth=True)

    def _numbers(self, opened: Any) -> Any:
        from tensornp.core.values.blocks import part_of_reader
        from tensornp.core.values.sources import Source as Values

        name = self.dtype_of_values
        # Flat, as a contiguous tensor is read: the same blocks give the same bits.
        part = part_of_reader(self.row_reader(opened), (math.prod(self.shape),), name)
        return Values((part,), name, self.shape, order=self.order)


def _flat_from_boxes(shape: Shape, read: Callable[[tuple[slice, ...]], Array]) -> Callable[[int, int], Array]:
    """Return a reader of elements by boxes of a bounded size; each thread keeps its last box."""
    axis = next((k for k in range(len(shape)) if math.prod(shape[k + 1 :]) <= _MAX_INNER), 0)
    inner, outer, num = math.prod(shape[axis + 1 :]), shape[:axis], shape[axis] if shape else 1
    num_rows = max(_MAX_BOX // max(inner, 1), 1)
    own = threading.local()

    def rows_of(lead: int, number: int) -> Array:
        """Return the rows of a box, flat: that of this number below the leading indices."""
        key, box = getattr(own, "last", (None, None))
        if key == (lead, number):
            return np.asarray(box)
        leading = tuple(slice(int(i), int(i) + 1) for i in np.unravel_index(lead, outer)) if outer else ()
        rows = slice(number * num_rows, min((number + 1) * num_rows, num))
        box = read((*leading, rows, *(slice(0, n) for n in shape[axis + 1 :]))).reshape(-1)
        own.last = (lead, number), box
        return box

    def read_flat(first: int, count: int) -> Array:
        if not shape:
            return read(()).reshape(-1)[first : first + count]
        parts, end = [], first + count
        while first < end:
            lead, rest = divmod(first, num * inner)
            number, skipped = divmod(rest, num_rows * inner)
            part = rows_of(lead, number)[skipped : skipped + end - first]
            parts.append(part)
            first += len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    return read_flat


def native(bits: Array) -> Array:
    """Return elements in the byte order of this machine, contiguous."""
    return np.ascontiguousarray(bits, bits.dtype.newbyteorder("=")).reshape(bits.shape)


def tensor_of(bits: Array, name: str) -> torch.Tensor:
    """Return a tensor of dtype `name` over native elements, which share memory."""
    import torch

    flat = np.ascontiguousarray(bits).reshape(-1).view(np.uint8)
    return torch.from_numpy(flat).view(_torch_dtype(name)).reshape(bits.shape)


def _torch_dtype(name: str) -> torch.dtype:
    import torch

    if not hasattr(torch, name):
        raise NoDataError(f"torch {torch.__version__} has no {name}; install a newer one")
    found: torch.dtype = getattr(torch, name)
    return found


def _array_of(whole: Array, name: str, *, writeable: bool, dtype: object) -> Array:
    from tensornp.core.convert.to_numpy import to_numpy

    if not whole.ndim and KNOWN[name].values_per_element > 1:
        # One element is several values.
        whole = whole.reshape(1)
    if dtype is None and whole.dtype.name == name:
        whole.flags.writeable = writeable
        return whole
    made: Array = to_numpy(tensor_of(whole, name), writeable=writeable, dtype=dtype)
    return made

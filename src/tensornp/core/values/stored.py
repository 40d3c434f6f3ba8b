"""Values in files that are read some at a time, as a tensor is."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, final

import numpy as np
import torch

from tensornp.core.convert.to_tensor import tensor_from_numpy
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.tensor.dtypes import KNOWN, name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import BITS, Places, is_storage, tensor_of
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.strides import num_stored

Array = np.ndarray[Any, Any]
Box = tuple[slice, ...]


@final
@dataclass(frozen=True)
class StoredValues:
    """The values of a tensor that lies in a file, read some at a time.

    `read_box` returns a box as a new tensor, `read_flat` a number of elements from one on. `codes` are the stored
    values of a weight whose `scheme` gives them their meaning. `reading` opens the file for many reads.
    """

    shape: tuple[int, ...]
    dtype: str
    read_box: Callable[[Box], torch.Tensor]
    read_flat: Callable[[int, int], Array]
    where: str = "tensor of a file"
    quantized: str = ""
    codes: StoredValues | None = None
    scheme: object = None
    is_sequential: bool = False
    max_stored: int | None = None
    reading: Callable[[], AbstractContextManager[Callable[[int, int], Array]]] | None = None

    @contextmanager
    def opened(self) -> Iterator[StoredValues]:
        if self.reading is None:
            yield self
            return
        with self.reading() as read_flat:
            yield replace(self, read_flat=read_flat)

    @property
    def array_shape(self) -> tuple[int, ...]:
        each = KNOWN[self.dtype].values_per_element
        return self.shape if each == 1 or not self.shape else (*self.shape[:-1], self.shape[-1] * each)

    @cached_property
    def info(self) -> TensorInfo:
        # One element stands for all, so that nothing is allocated.
        return inspect(torch.empty((), dtype=getattr(torch, self.dtype)).expand(self.shape))

    def few(self, places: Places) -> torch.Tensor:
        """Return the elements at `places`, which has a list of indices for each dimension."""
        runs = [_runs(axis) for axis in places]
        made = torch.empty([len(axis) for axis in places], dtype=getattr(torch, self.dtype))
        # Raw bytes are put together, since torch cannot assign all dtypes.
        bits = made.view(BITS[made.element_size()])
        for some in product(*runs):
            box = tuple(slice(first, first + count) for _, first, count in some)
            at = tuple(slice(start, start + count) for start, _, count in some)
            bits[at] = self.read_box(box).view(bits.dtype)
        return made


def values_of_array(array: Array) -> torch.Tensor | StoredValues:
    """Return the values of an array as those of a tensor; raise UnsupportedArrayError for other dtypes."""
    facts = KNOWN.get(array.dtype.name)
    is_masked = issubclass(type(array), np.ma.MaskedArray)
    if is_masked or facts is None or facts.values_per_element > 1 or not hasattr(torch, facts.name):
        # It has a mask, two elements are packed into a byte, or there is no such dtype.
        return tensor_from_numpy(array, None, torch.device("cpu"))

    def box(at: Box) -> torch.Tensor:
        return tensor_from_numpy(np.array(array[at], order="C"), None, torch.device("cpu"))

    def bits(at: Box) -> Array:
        part = np.array(array[at], order="C")
        return np.asarray(part, part.dtype.newbyteorder("=")).view(facts.bits or facts.numpy)

    return StoredValues(
        array.shape, facts.name, box, flat_from_boxes(array.shape, bits), where="array",
        max_stored=num_stored(array.shape, array.strides, max(array.itemsize, 1)),
    )  # fmt: skip


def _runs(indices: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the runs of consecutive indices: place in the list, first index, length."""
    runs: list[tuple[int, int, int]] = []
    for at, index in enumerate(indices):
        if runs and index == sum(runs[-1][1:]):
            start, first, count = runs[-1]
            runs[-1] = start, first, count + 1
        else:
            runs.append((at, index, 1))
    return runs


MAX_INNER, MAX_BOX = 2**16, 2**20
"""Elements of the innermost dimensions, and of a box, that are read together where elements lie in another order."""


def flat_from_boxes(shape: tuple[int, ...], read: Callable[[Box], Array]) -> Callable[[int, int], Array]:
    """Return a reader of elements by boxes of a bounded size; each thread keeps its last box."""
    axis = next((k for k in range(len(shape)) if math.prod(shape[k + 1 :]) <= MAX_INNER), 0)
    inner, outer, num = math.prod(shape[axis + 1 :]), shape[:axis], shape[axis] if shape else 1
    num_rows = max(MAX_BOX // max(inner, 1), 1)
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


class Description(NamedTuple):
    class_name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.class_name} {self.shape} {self.dtype}"


def described(obj: Any) -> Description:
    if issubclass(type(obj), StoredValues):
        return Description(obj.where, obj.shape, obj.dtype)
    name = type(obj).__name__
    if is_array(obj):
        plain_array = np.ndarray.view(obj, np.ndarray)
        return Description(name, plain_array.shape, name_of(plain_array.dtype))
    info = inspect(tensor_of(obj) if is_storage(obj) else obj)
    return Description(name, info.shape, name_of(info.dtype))

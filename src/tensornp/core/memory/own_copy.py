"""Copies of the elements of a tensor or an array in main memory, which neither threads nor short files can spoil."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided

from tensornp.core.lowlevel.raw_memory import (
    GIVEN_BACK,
    PAGE_NBYTES,
    Memory,
    can_be_read_in_place,
    check_readable,
    check_runs,
    is_on,
    memory_of,
    read,
)
from tensornp.core.lowlevel.torch_private import address_of
from tensornp.core.memory.arrays import extent_of_array
from tensornp.core.memory.extents import Extent
from tensornp.core.tensor.indexing import Places, are_all, indexed
from tensornp.core.tensor.strides import is_in_order, num_reached
from tensornp.errors import NotReadError

Bytes = np.ndarray[Any, Any]


def elements(raw: torch.Tensor, places: Places) -> torch.Tensor:
    """Return the elements at `places` of an alias that nobody else has, in new memory; its lazy bits must be off.

    Raises `NotReadError` where they cannot be read, or no longer.
    """
    if raw.device.type != "cpu" or not is_on() or not all(places):
        return indexed(raw, places)
    if any([max(place) >= size for place, size in zip(places, raw.shape, strict=True)]):
        raise NotReadError(GIVEN_BACK)
    if is_steady(raw):
        return indexed(raw, places)
    if are_all(places, raw.shape):
        return copied(raw)
    memory = memory_of(raw)
    first, itemsize = _first_of(raw)
    return _tensor_over(_gathered(memory, first, raw.stride(), itemsize, places), raw.dtype, map(len, places))


def _gathered(memory: Memory, first: int, strides: tuple[int, ...], itemsize: int, places: Places) -> Bytes:
    """Return the bytes of each element at `places`, in order."""
    offsets = np.zeros(1, np.int64)
    for place, step in zip(places, strides, strict=True):
        offsets = np.add.outer(offsets, np.array(place, np.int64) * (step * itemsize)).reshape(-1)
    distinct, position = np.unique(offsets, return_inverse=True)
    # To read on over a gap of less than a page costs less than another run.
    is_end = np.diff(distinct, append=np.iinfo(np.int64).max) > PAGE_NBYTES
    starts = distinct[np.concatenate(([True], is_end[:-1]))]
    width = int((distinct[is_end] - starts).max()) + itemsize
    # Runs of one width make one call; the last one must not lead out of the memory.
    lows = np.minimum(starts, memory.address + memory.nbytes - first - width)
    rows = read(memory, first + lows, width)
    run = np.searchsorted(starts, distinct, side="right") - 1
    within = run * width + distinct - lows[run]
    return rows.reshape(-1)[within[position.reshape(-1)][:, None] + np.arange(itemsize)]  # type: ignore[no-any-return]


def _first_of(raw: torch.Tensor) -> tuple[int, int]:
    """Return the address of the first element, and its bytes."""
    return address_of(raw), raw.element_size()


def is_steady(raw: torch.Tensor) -> bool:
    """Return whether the memory of such an alias is not that of a file; raises if it is gone."""
    if raw.device.type != "cpu" or not is_on() or not raw.numel():
        return True
    memory = memory_of(raw)
    low, itemsize = _first_of(raw)
    high = low + num_reached(raw.shape, raw.stride()) * itemsize
    memory.check(low, high)
    return can_be_read_in_place(memory, high - low)


def copied(raw: torch.Tensor) -> torch.Tensor:
    """Return a contiguous copy of such an alias, which the system makes; raises as `elements` does."""
    first, itemsize = _first_of(raw)
    memory = memory_of(raw)
    # NumPy has 64 dimensions, 32 before 2.0, and the bytes are one more.
    long = [(n, step * itemsize) for n, step in zip(raw.shape, raw.stride(), strict=True) if n != 1]
    shape, strides = tuple(n for n, _ in long), tuple(step for _, step in long)
    return _tensor_over(packed(memory, first, shape, strides, itemsize), raw.dtype, raw.shape)


def array_copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a contiguous copy of an array, which the system makes of its bytes; raises as `elements` does."""
    extent = extent_of_array(array)
    if not is_on() or extent.is_empty:
        return np.array(array, order="C")
    low, high = extent.bounds
    data = packed(Memory(array, low, high - low), extent.address, extent.shape, extent.strides, extent.itemsize)
    own: np.ndarray[Any, Any] = data.reshape(-1).view(array.dtype).reshape(extent.shape)
    return own


def _tensor_over(data: Bytes, dtype: torch.dtype, shape: Any) -> torch.Tensor:
    if not data.size:
        return torch.empty(tuple(shape), dtype=dtype, device="cpu")
    return torch.frombuffer(data.reshape(-1), dtype=torch.uint8).view(dtype).view(tuple(shape))


def packed(memory: Memory, first: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Bytes:
    """Return the bytes of all elements in the order of their indices, of shape ``(*shape, itemsize)``, in new memory.

    `first` is the address of the first element, `strides` count bytes. What lies between the elements is read too where
    that costs less than to leave it out.
    """
    if not math.prod(shape):
        return np.empty((*shape, itemsize), np.uint8)
    if is_in_order(shape, strides, itemsize):
        return read(memory, [first], math.prod(shape) * itemsize).reshape(*shape, itemsize)
    if _span_nbytes(shape, strides, itemsize) > _MAX_SPAN_NBYTES:
        return _packed_in_halves(memory, first, shape, strides, itemsize)
    outer, span = _layout(shape, strides, itemsize)
    low = first + sum((n - 1) * step for n, step in zip(shape, strides, strict=True) if step < 0)
    addresses = np.full(1, low, np.int64)
    for dim in outer:
        addresses = np.add.outer(addresses, np.arange(shape[dim], dtype=np.int64) * abs(strides[dim])).reshape(-1)
    rows = read(memory, addresses, span)
    steps = [abs(step) for step in strides]
    for i, dim in enumerate(outer):
        steps[dim] = span * math.prod(shape[later] for later in outer[i + 1 :])
    view = as_strided(rows, (*shape, itemsize), (*steps, 1), writeable=False)
    flips = tuple(slice(None, None, -1) if step < 0 else slice(None) for step in strides)
    return np.array(view[flips], order="C")


def _span_nbytes(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    """Return how many bytes are read."""
    outer, span = _layout(shape, strides, itemsize)
    return math.prod(shape[dim] for dim in outer) * span


_MAX_SPAN_NBYTES = 2**25


def _packed_in_halves(
    memory: Memory, first: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> Bytes:
    """Return the packed elements, read in two halves of the dimension that reaches furthest."""
    dim = max(range(len(shape)), key=lambda dim: abs(strides[dim]) * (shape[dim] - 1))
    half = shape[dim] // 2
    halves = ((first, half), (first + half * strides[dim], shape[dim] - half))
    parts = [packed(memory, at, (*shape[:dim], n, *shape[dim + 1 :]), strides, itemsize) for at, n in halves]
    return np.concatenate(parts, axis=dim)


def check_extent(extent: Extent) -> None:
    """Raise `NotReadError` unless its elements can be read; pages that lie between them are not asked for."""
    outer, span = _layout(extent.shape, extent.strides, extent.itemsize)
    low, high = extent.bounds
    if not outer:
        check_readable(low, high)
        return
    addresses = np.full(1, low, np.int64)
    for dim in outer:
        addresses = np.add.outer(addresses, np.arange(extent.shape[dim]) * abs(extent.strides[dim])).reshape(-1)
    check_runs(addresses, span)


def _layout(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[list[int], int]:
    """Return the dimensions over which runs of bytes are spread, the widest first, and the bytes of a run."""
    span = itemsize
    dims = sorted((abs(step), dim) for dim, step in enumerate(strides) if step and shape[dim] > 1)
    for i, (step, dim) in enumerate(dims):
        if step > max(span, PAGE_NBYTES):
            return [dim for _, dim in itertools.islice(reversed(dims), len(dims) - i)], span
        span += step * (shape[dim] - 1)
    return [], span

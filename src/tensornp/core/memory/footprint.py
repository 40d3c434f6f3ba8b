"""Find the bytes of a tensor or an array: its elements and the storages around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import is_array, is_tensor, own_attributes
from tensornp.core.memory.extents import Extent, Span
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.form import PACKED_BITS, is_held
from tensornp.core.tensor.kinds import parts_of
from tensornp.core.tensor.strides import num_reached
from tensornp.errors import NotReadError

_MAX_BASES = 100
storage_of: Callable[[torch.Tensor], torch.UntypedStorage] = torch.Tensor.untyped_storage


def footprint_of(obj: Any) -> tuple[tuple[Extent, ...], list[Span]]:
    """Return the places of the elements, and the addresses of the storages or the buffer around them."""
    if not is_tensor(obj):
        if not is_array(obj):
            # The memory of a registered class is not known.
            return (), []
        extent, ((low, high), base) = extent_of_array(obj), origin_of(obj)
        spans = footprint_of(base)[1] if base is not None else [("cpu", low, high)] if low and low < high else []
        return () if extent.is_empty else (extent,), spans
    extents, spans = [], []
    with modes.outside_modes():
        for part, holders in parts_of(obj):
            device, start, nbytes = str(part.device), torch_private.storage_address(part), storage_of(part).nbytes()
            if start and nbytes:
                spans.append((device, start, start + nbytes))
            if not part.numel() or not is_held(part):
                continue
            shape, itemsize = tuple(part.shape), part.element_size()
            strides = tuple([step * itemsize for step in part.stride()])
            if part.dtype in PACKED_BITS:
                # Strides count codes, so only the span is known.
                nbytes = -(-num_reached(shape, part.stride()) * PACKED_BITS[part.dtype] // 8)
                shape, strides, itemsize = (nbytes,), (1,), 1
            dtype = "conj " * part.is_conj() + "neg " * part.is_neg() + name_of(part.dtype)
            meaning = " in ".join((dtype, *holders))
            extents.append(Extent(device, torch_private.address_of(part), tuple(shape), strides, itemsize, meaning))
    return tuple(extents), spans


def check_parts(tensor: torch.Tensor) -> None:
    """Raise NotReadError if the memory of a part was freed or shrunk: torch would crash."""
    for part, _ in parts_of(tensor, has_all=True):
        if not is_held(part):
            raise NotReadError("its memory was freed, and cannot be read")


def extent_of_array(array: np.ndarray[Any, Any]) -> Extent:
    plain = np.ndarray.view(array, np.ndarray)
    dtype: np.dtype[Any] = plain.dtype
    meaning = dtype.name if dtype.isnative else dtype.str
    return Extent("cpu", plain.__array_interface__["data"][0], plain.shape, plain.strides, dtype.itemsize, meaning)


def origin_of(array: np.ndarray[Any, Any]) -> tuple[tuple[int, int], torch.Tensor | None]:
    """Return the bounds of an array and its bases, and the tensor whose memory it has."""
    low, high = extent_of_array(array).bounds
    for base in bases_of(array):
        if is_array(base):
            bottom, top = extent_of_array(base).bounds
            low, high = min(low, bottom), max(high, top)
        if is_tensor(base):
            return (low, high), base
    return (low, high), None


def bases_of(obj: Any) -> Iterator[Any]:
    for _ in range(_MAX_BASES):
        if is_array(obj):
            obj = np.ndarray.base.__get__(obj)
        elif isinstance(obj, memoryview):
            obj = obj.obj
        else:
            # `as_strided` puts a small object of its own between an array and its base.
            obj = dict(own_attributes(obj)).get("base") if type(obj).__module__.startswith("numpy.") else None
        if obj is None:
            return
        yield obj


def is_freed(array: np.ndarray[Any, Any]) -> bool:
    """Return whether the storage under `array` has moved, as `share_memory_` does it; a read may crash."""
    _, base = origin_of(array)
    if base is None:
        return False
    start = torch_private.storage_address(base)
    low, high = extent_of_array(array).bounds
    return low < high and not start <= low <= high <= start + storage_of(base).nbytes()

"""Find the memory of a NumPy array and the object that owns it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import is_array, is_tensor, own_attributes
from tensornp.core.memory.extents import Extent
from tensornp.errors import NoDataError

_MAX_BASES = 100
_FORMATS = frozenset([*"bBhHiIlLqQefd?", "Zf", "Zd"])
"""Formats of memoryviews that NumPy understands; others are read as bytes."""


class Origin(NamedTuple):
    """The bytes of the outermost array under an array, and the tensor under it, if there is one."""

    bounds: tuple[int, int]
    tensor: torch.Tensor | None


def array_over(obj: Any) -> np.ndarray[Any, Any]:
    """Return `obj` if it is an array, else an array over a memoryview, bytearray, array.array or mmap.

    Raises ValueError for a released memoryview.
    """
    if is_array(obj):
        return obj
    view = obj if isinstance(obj, memoryview) else memoryview(obj)
    return np.asarray(view) if view.format in _FORMATS else np.frombuffer(view, np.uint8)


def extent_of_array(array: np.ndarray[Any, Any]) -> Extent:
    """Return the place of the elements of `array`; overrides of a subclass are ignored."""
    plain = np.ndarray.view(array, np.ndarray)
    dtype: np.dtype[Any] = plain.dtype
    meaning = dtype.name if dtype.isnative else dtype.str
    return Extent("cpu", plain.__array_interface__["data"][0], plain.shape, plain.strides, dtype.itemsize, meaning)


def origin_of(array: np.ndarray[Any, Any]) -> Origin:
    """Return the memory that `array` is a view of, through arrays, memoryviews and stride tricks."""
    low, high = extent_of_array(array).bounds
    for base in bases_of(array):
        if is_array(base):
            bottom, top = extent_of_array(base).bounds
            low, high = min(low, bottom), max(high, top)
        if is_tensor(base):
            return Origin((low, high), base)
    return Origin((low, high), None)


def bases_of(obj: Any) -> Iterator[Any]:
    """Yield each object that an array or a memoryview is a view of, up to the owner of the memory."""
    for _ in range(_MAX_BASES):
        obj = base_of(obj)
        if obj is None:
            return
        yield obj


def base_of(obj: Any) -> Any:
    """Return the object that `obj` is a view of; None if it owns its memory."""
    if is_array(obj):
        return np.ndarray.base.__get__(obj)
    if isinstance(obj, memoryview):
        return obj.obj
    # `as_strided` and `sliding_window_view` put a small object of their own between an array and its base.
    return dict(own_attributes(obj)).get("base") if type(obj).__module__.startswith("numpy.") else None


def has_left(array: np.ndarray[Any, Any], base: torch.Tensor) -> bool:
    """Return whether the storage under `array` has moved, as `share_memory_` does it; a read may crash."""
    start = torch_private.storage_address(base)
    low, high = extent_of_array(array).bounds
    return low < high and not start <= low <= high <= start + torch.Tensor.untyped_storage(base).nbytes()


def check_array(array: np.ndarray[Any, Any]) -> None:
    """Raise NoDataError if the tensor under `array` has freed its memory."""
    base = origin_of(array).tensor
    if base is not None and has_left(array, base):
        raise NoDataError("the memory of this array was freed by the tensor that it was made of; make it again")

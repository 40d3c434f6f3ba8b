"""Where the elements of a NumPy array lie, and whose memory that is: the chain of bases, followed to its end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.lowlevel import raw_memory, torch_private
from tensornp.core.lowlevel.attributes import is_array, is_tensor, own_attributes
from tensornp.core.memory.extents import Extent
from tensornp.errors import NoDataError, NotReadError

_MAX_BASES = 100
_MASKED_EDGE = 750
_FORMATS = frozenset([*"bBhHiIlLqQefd?", "Zf", "Zd"])
"""Of memoryviews that NumPy understands; others are looked at as bytes."""
_interface = np.ndarray.__array_interface__.__get__
_base, _strides, _shape, _dtype = (getattr(np.ndarray, name).__get__ for name in ("base", "strides", "shape", "dtype"))


class Origin(NamedTuple):
    """What an array is a view of: the bytes of the outermost array, and the tensor under it, if there is one."""

    bounds: tuple[int, int]
    tensor: torch.Tensor | None


def array_over(obj: Any) -> np.ndarray[Any, Any]:
    """Return `obj` if it is an array, else one over the memory of a memoryview, bytearray, array.array or mmap.

    Raises ValueError for a memoryview that was released.
    """
    if is_array(obj):
        return obj
    view = obj if isinstance(obj, memoryview) else memoryview(obj)
    return np.asarray(view) if view.format in _FORMATS else np.frombuffer(view, np.uint8)


def extent_of_array(array: np.ndarray[Any, Any]) -> Extent:
    """Return where the elements of `array` lie, read past whatever a subclass overrides."""
    dtype: np.dtype[Any] = _dtype(array)
    address = int(_interface(array)["data"][0])
    meaning = dtype.name if dtype.isnative else dtype.str
    return Extent("cpu", address, _shape(array), _strides(array), dtype.itemsize, meaning)


def origin_of(array: np.ndarray[Any, Any]) -> Origin:
    """Return what `array` is a view of, through arrays, memoryviews and the helpers of stride tricks."""
    low, high = extent_of_array(array).bounds
    for base in bases_of(array):
        if is_array(base):
            bottom, top = extent_of_array(base).bounds
            low, high = min(low, bottom), max(high, top)
        if is_tensor(base):
            return Origin((low, high), base)
    return Origin((low, high), None)


def bases_of(obj: Any) -> Iterator[Any]:
    """Yield what an array or a memoryview is a view of, from one to the next, to what the memory belongs to."""
    for _ in range(_MAX_BASES):
        obj = base_of(obj)
        if obj is None:
            return
        yield obj


def base_of(obj: Any) -> Any:
    """Return what `obj` is a view of, or None where it has memory of its own."""
    if is_array(obj):
        return _base(obj)
    if isinstance(obj, memoryview):
        return obj.obj
    if type(obj) is raw_memory.CAPSULE:
        return raw_memory.tensor_in_capsule(obj)
    # `as_strided` and `sliding_window_view` put a small object of their own between an array and its base.
    return dict(own_attributes(obj)).get("base") if type(obj).__module__.startswith("numpy.") else None


def has_left(array: np.ndarray[Any, Any], base: torch.Tensor) -> bool:
    """Return whether `array` lies outside of the storage of the tensor that it was made of: that has moved under it.

    What the array points to then was given back, and must not be read.
    """
    start = torch_private.storage_address(base)
    low, high = extent_of_array(array).bounds
    return low < high and not start <= low <= high <= start + torch.Tensor.untyped_storage(base).nbytes()


def check_array(array: np.ndarray[Any, Any]) -> None:
    """Raise NoDataError where a read of `array` would end the process: its memory was given back, or its file cut."""
    base = origin_of(array).tensor
    if base is not None and has_left(array, base):
        raise NoDataError("the memory of this array was given back by the tensor it was made of; make it anew")
    try:
        raw_memory.check_readable(*extent_of_array(array).bounds)
    except NotReadError as reason:
        raise NoDataError(f"the values cannot be read: {reason}") from None


def check_printed(array: np.ndarray[Any, Any]) -> None:
    """Raise NoDataError where NumPy's own text of `array`, which reads its edges, would end the process."""
    options, extent = np.get_printoptions(), extent_of_array(array)
    if extent.is_empty:
        return
    # Of a masked array more is read.
    edge = max(options["edgeitems"], _MASKED_EDGE if isinstance(array, np.ma.MaskedArray) else 0)
    is_whole, addresses = math.prod(extent.shape) <= options["threshold"], np.full(1, extent.address, np.int64)
    for n, step in zip(extent.shape, extent.strides, strict=True):
        places = np.arange(n) if is_whole or n <= 2 * edge else np.r_[:edge, n - edge : n]
        addresses = np.add.outer(addresses, places * step).reshape(-1)
    try:
        raw_memory.check_runs(addresses, extent.itemsize)
    except NotReadError as reason:
        raise NoDataError(f"the values cannot be read: {reason}") from None

"""Find the bytes of a tensor or an array: its elements and the storages around them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import is_array, is_tensor, own_attributes
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.memory.extents import Extent, Span
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.form import PACKED_BITS, is_held, is_storage, num_bits, plain, tensor_of
from tensornp.core.tensor.kinds import form_of
from tensornp.core.tensor.stand_ins import own_tensor_of, stand_in_of
from tensornp.core.tensor.strides import num_reached
from tensornp.errors import NoDataError, NotReadError

_MAX_BASES = 100
_FORMATS = frozenset([*"bBhHiIlLqQefd?", "Zf", "Zd"])
"""Formats of memoryviews that NumPy understands; others are read as bytes."""
_MAX_DEPTH = 8
storage_of: Callable[[torch.Tensor], torch.UntypedStorage] = torch.Tensor.untyped_storage


def spans_of(obj: Any) -> list[Span]:
    """Return the addresses of the storages of a tensor, or of the buffer of an array."""
    held = _held_by(obj)
    if held is None:
        return []
    if not is_tensor(held):
        (low, high), base = origin_of(array_over(held))
        return spans_of(base) if base is not None else [("cpu", low, high)] if low and low < high else []
    found = []
    with modes.outside_modes():
        for part, _ in _parts_under(held):
            start, nbytes = torch_private.storage_address(part), storage_of(part).nbytes()
            if start and nbytes:
                found.append((str(part.device), start, start + nbytes))
    return found


def overlap(spans: Iterable[Span], others: Collection[Span]) -> bool:
    """Return whether storages or buffers have a byte in common."""
    return any(
        device == place and low < top and bottom < high for device, low, high in spans for place, bottom, top in others
    )


def extents_of(obj: Any) -> tuple[Extent, ...]:
    """Return the places of the elements; several for a tensor that consists of several."""
    held = _held_by(obj)
    if held is None:
        return ()
    if not is_tensor(held):
        extent = extent_of_array(array_over(held))
        return () if extent.is_empty else (extent,)
    with modes.outside_modes():
        parts = [(part, holders) for part, holders in _parts_under(held) if part.numel() and is_held(part)]
        return tuple([_extent_of(part, holders) for part, holders in parts])


def parts_under(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the strided tensors that hold the values of `tensor`: itself, if it is an ordinary one."""
    return [part for part, _ in _parts_under(tensor)]


def check_parts(tensor: torch.Tensor) -> None:
    """Raise NotReadError if the memory of a part of `tensor` was freed or shrunk: torch would crash."""
    with modes.outside_modes():
        if not all(is_held(part) for part, _ in _parts_under(tensor, has_all=True)):
            raise NotReadError("its memory was freed, and cannot be read")


def is_one_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(storage_of(a)._cdata == storage_of(b)._cdata)


def _held_by(obj: Any) -> Any:
    """Return the tensor over a storage or inside a stand-in, else `obj`; None if there is none to keep."""
    if is_tensor(obj):
        return obj
    if is_storage(obj):
        return tensor_of(obj)
    return own_tensor_of(obj) if stand_in_of(obj) is not None else obj


def _parts_under(
    tensor: Any, holders: tuple[str, ...] = (), *, has_all: bool = False
) -> Iterator[tuple[torch.Tensor, tuple[str, ...]]]:
    """Yield the strided parts of a tensor, with the classes that give their bytes another meaning.

    `has_all` adds those that only describe others: offsets, scales, a mask.
    """
    form = form_of(tensor)
    if len(holders) > _MAX_DEPTH or form.state not in ("available", "wrapped", "remote"):
        return
    has_strides = form.state == "available" and form.kind.has_strides
    if has_strides:
        yield (tensor if is_of_torch(tensor) else plain(tensor)), tuple(filter(None, holders))
    name, inner = "", []
    if form.state == "wrapped" or form.kind.has_other_meaning:
        name = type(tensor).__name__
        inner = [value for _, value in own_attributes(tensor) if is_tensor(value)]
    elif not has_strides or has_all:
        held = form.kind.inner(tensor)
        inner = [held] if held is not None else []
        if has_all or held is None or not form.kind.gives_several:
            inner += form.kind.parts(tensor)
    for part in inner:
        yield from _parts_under(part, (name, *holders), has_all=has_all)


def _extent_of(part: torch.Tensor, holders: tuple[str, ...]) -> Extent:
    bits = "conj " * part.is_conj() + "neg " * part.is_neg()
    meaning, device = " in ".join((bits + name_of(part.dtype), *holders)), str(part.device)
    address, itemsize, shape = torch_private.address_of(part), part.element_size(), tuple(part.shape)
    if part.dtype in PACKED_BITS:
        # Strides count codes, so only the span is known.
        nbytes = -(-num_reached(shape, part.stride()) * num_bits(part) // 8)
        return Extent(device, address, (nbytes,), (1,), 1, meaning)
    return Extent(device, address, shape, tuple([step * itemsize for step in part.stride()]), itemsize, meaning)


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

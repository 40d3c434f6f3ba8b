"""Which bytes a tensor or an array reaches: its elements, and the storages or the buffer that they lie in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from tensornp.core.lowlevel import modes, raw_memory, torch_private
from tensornp.core.lowlevel.attributes import is_tensor, own_attributes
from tensornp.core.lowlevel.ordinary import is_strided
from tensornp.core.memory.arrays import array_over, extent_of_array, has_left, origin_of
from tensornp.core.memory.extents import Extent
from tensornp.core.memory.own_copy import check_extent
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import is_storage, plain_part, tensor_of
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.tensor.reading import held_tensor, parts_of
from tensornp.core.tensor.stand_ins import own_tensor_of, stand_in_of
from tensornp.errors import NotReadError

Span = tuple[str, int, int]
"""A device, the address of the first byte and that after the last one."""
Part = tuple[torch.Tensor, TensorInfo, tuple[str, ...]]
_device_slot: Any = torch.Tensor.device
_is_cpu: Any = torch.Tensor.is_cpu
_PACKED = (torch.quint4x2, torch.quint2x4)


def spans_of(obj: Any) -> list[Span]:
    """Return the devices and addresses from and to which the storages of a tensor, or the buffer of an array, go."""
    # Asked of all weights of a model: most are tensors, and told by their class first.
    if not issubclass(type(obj), torch.Tensor):
        if is_storage(obj) or stand_in_of(obj) is not None:
            held = _held_by(obj)
            return spans_of(held) if held is not None else []
        array = array_over(obj)
        (low, high), base = origin_of(array)
        if base is not None and not has_left(array, base):
            return spans_of(base)
        return [("cpu", low, high)] if low and low < high else []
    try:
        start = torch_private.storage_address(obj)
        if start:
            nbytes = storage_of(obj).nbytes()
            device = "cpu" if _is_cpu.__get__(obj) else str(_device_slot.__get__(obj))
            return [(device, start, start + nbytes)] if nbytes else []
    except Exception:
        # Sparse tensors and wrappers have no storage of their own, but parts that have.
        pass
    part = plain_part(obj)
    if part is not None:
        # One without memory would be asked for all its facts.
        return spans_of(part) if torch_private.storage_address(part) else []
    with modes.outside_modes():
        return [span for part in parts_under(obj) if part is not obj for span in spans_of(part)]


def meet(spans: Iterable[Span], others: Iterable[Span]) -> bool:
    """Return whether storages or buffers have a byte in common."""
    some = tuple(others)
    return any(
        device == place and low < top and bottom < high for device, low, high in spans for place, bottom, top in some
    )


def check_parts(tensor: torch.Tensor, info: TensorInfo | None = None) -> None:
    """Raise `NotReadError` if what reading `tensor` reads in main memory cannot be read: a file was cut under it.

    That is all of which it consists: indices, offsets, scales and a mask too.
    """
    with modes.outside_modes():
        if _is_allocated(tensor):
            return
        known = info if info is not None and not info.kind.gives_several else inspect(tensor)
        if known.data_state == "freed":
            raise NotReadError(known._wrapper or raw_memory.GIVEN_BACK)
        for _, found, _ in _parts_under(tensor, (), known, is_read=True):
            for extent in _extents_at(found):
                if extent.device == "cpu" and not extent.is_empty:
                    check_extent(extent)


def _is_allocated(tensor: torch.Tensor) -> bool:
    """Return whether torch has allocated all of the memory of a tensor itself, so that it is no file's."""
    try:
        return is_strided(tensor) and not tensor.is_quantized and tensor.untyped_storage().resizable()
    except (RuntimeError, NotImplementedError):
        return False


def extents_of(obj: Any, info: TensorInfo | None = None) -> tuple[Extent, ...]:
    """Return where the elements of a tensor or an array lie; several for one that consists of several tensors.

    `info` is its metadata, where that was read already.
    """
    if info is not None and info.kind is STRIDED:
        return tuple(extent for extent in _extents_at(info) if not extent.is_empty)
    if is_storage(obj) or stand_in_of(obj) is not None:
        held = _held_by(obj)
        return extents_of(held) if held is not None else ()
    if not issubclass(type(obj), torch.Tensor):
        return tuple(extent for extent in (extent_of_array(array_over(obj)),) if not extent.is_empty)
    with modes.outside_modes():
        part = plain_part(obj)
        if part is not None and not part.numel():
            return ()
        plain = _extent_of_plain(obj if part is None else part)
        return (plain,) if plain is not None else tuple(one for one in _extents_of(obj) if not one.is_empty)


def _held_by(obj: Any) -> torch.Tensor | None:
    """Return the tensor over a storage, or that an object stands for; None where that is made anew each time."""
    return tensor_of(obj) if is_storage(obj) else own_tensor_of(obj)


def _extent_of_plain(tensor: torch.Tensor) -> Extent | None:
    """Return where the elements of an ordinary tensor lie, at a tenth of the cost of all facts; None of any other."""
    try:
        if not is_strided(tensor):
            return None
        address, itemsize, shape = torch_private.address_of(tensor), tensor.element_size(), tuple(tensor.shape)
        if not address or 0 in shape or tensor.is_quantized or tensor.dtype in _PACKED:
            return None
        strides = tuple(step * itemsize for step in tensor.stride())
        if len(shape) != len(strides):
            # Another thread has given it another shape in between.
            return None
        reach = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + itemsize
        if tensor.storage_offset() * itemsize + reach > tensor.untyped_storage().nbytes():
            return None
        bits = "conj " * tensor.is_conj() + "neg " * tensor.is_neg()
        return Extent(str(tensor.device), address, shape, strides, itemsize, bits + name_of(tensor.dtype))
    except (RuntimeError, NotImplementedError):
        # Wrappers of torch's own transforms are of the same class, and have no storage.
        return None


def _extents_of(tensor: torch.Tensor) -> Iterator[Extent]:
    for _, info, holders in _parts_under(tensor, ()):
        for extent in _extents_at(info):
            yield replace(extent, meaning=" in ".join((extent.meaning, *holders)))


def parts_under(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors over storages in which `tensor` holds what it holds: itself, for an ordinary one."""
    return [part for part, _, _ in _parts_under(tensor, ())]


def _parts_under(
    tensor: torch.Tensor, holders: tuple[str, ...], info: TensorInfo | None = None, *, is_read: bool = False
) -> Iterator[Part]:
    """Yield each such part with its metadata, and the classes in which it means something else, the inmost first.

    With `is_read`, each that reading all values reads and that torch has not allocated itself.
    """
    if is_read and _is_allocated(tensor):
        return
    info = info or inspect(tensor)
    if info.storage is not None and info.stride is not None:
        yield tensor, info, tuple(name for name in holders if name)
        for part in parts_of(tensor, info.kind) if is_read else ():
            yield from _parts_under(part, holders, is_read=True)
        return
    if len(holders) > 8 or info.data_state not in ("available", "wrapped", "remote"):
        return
    # The bytes of a class that computes its values mean something else than those of the tensor inside.
    name = ""
    if info.data_state == "wrapped" or info.kind.has_other_meaning:
        inner = [value for _, value in own_attributes(tensor) if is_tensor(value)]
        name = info.type_name
    else:
        held = held_tensor(tensor, info.kind)
        inner = [*([held] if held is not None else []), *parts_of(tensor, info.kind)]
        if info.kind.gives_several and held is not None and not is_read:
            # The other parts only say where one tensor ends and the next begins.
            inner = [held]
    for part in inner:
        yield from _parts_under(part, (name, *holders), is_read=is_read)


def _extents_at(info: TensorInfo) -> Iterator[Extent]:
    # What lies past the end of a storage that was freed or shrunk belongs to others; codes without scales are there.
    if info.storage is not None and info.stride is not None and (info.data_state == "available" or info._wrapper):
        yield extent_of(info)


def extent_of(info: TensorInfo) -> Extent:
    """Return where the elements lie of which `info` knows strides and storage."""
    assert info.storage is not None and info.stride is not None
    bits = "conj " * info.is_conj + "neg " * info.is_neg
    meaning, device = bits + name_of(info.dtype), str(info.device)
    if info.dtype in (torch.quint4x2, torch.quint2x4):
        # Several codes a byte: strides count codes, so only the span is known.
        offset = info.storage_offset or 0
        per_byte = 2 if info.dtype == torch.quint4x2 else 4
        span = max(info.storage.reach - offset // per_byte, 0)
        return Extent(device, info.storage.address, (span,), (1,), 1, meaning)
    strides = tuple(step * info.itemsize for step in info.stride)
    return Extent(device, info.storage.address, info.shape, strides, info.itemsize, meaning)


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage:
    return torch.Tensor.untyped_storage(tensor)


def is_one_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(storage_of(a)._cdata == storage_of(b)._cdata)

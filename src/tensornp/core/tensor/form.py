"""Strip a tensor to what torch itself knows of it, and make tensors over storages."""

from __future__ import annotations

from typing import Any

import torch

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.torch_private import is_of_torch, is_strided
from tensornp.core.tensor.strides import num_reached

MAX_NUMEL = 4_000_000
"""Elements that a display lays out at most, for kinds that cannot be indexed."""
Places = list[list[int]]
"""The wanted indices of each dimension."""


class Bare:
    """A tensor's attributes as `torch.Tensor` itself defines them, whatever its class overrides."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.Tensor, name).__get__(self._tensor)


def plain_part(tensor: Any) -> torch.Tensor | None:
    """Return the ordinary local tensor of a DTensor; None for other tensors."""
    cls = type(tensor)
    # A class that derives from it may say something else of itself.
    if is_of_torch(tensor) or cls.__name__ != "DTensor" or not cls.__module__.startswith("torch.distributed"):
        return None
    part: Any = getattr(tensor, "_local_tensor", None)
    is_plain = type(part) is torch.Tensor and is_strided(part) and not part.is_quantized
    is_plain = is_plain and not torch_private.is_functorch_wrapper(part)
    return part if is_plain and (torch_private.storage_address(part) or not part.numel()) else None


def over_storage(raw: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the same elements as `dtype`, without lazy bits and scales."""
    over = quietly(torch.empty, 0, dtype=dtype, device=raw.device)
    return over.set_(raw.untyped_storage(), raw.storage_offset(), raw.shape, raw.stride())


STORAGES = (torch.UntypedStorage, torch.TypedStorage)


def is_storage(obj: Any) -> bool:
    """Return whether `obj` is the memory under a tensor, by its type."""
    return any([issubclass(type(obj), kind) for kind in STORAGES])


def tensor_of(storage: Any) -> torch.Tensor:
    """Return the one-dimensional tensor over all of a storage."""
    typed = issubclass(type(storage), torch.TypedStorage)
    with modes.outside_modes():
        untyped = torch_private.untyped(storage) if typed else storage
        dtype: torch.dtype = storage.dtype if typed else torch.uint8
        over: torch.Tensor = torch.empty(0, dtype=dtype, device=untyped.device)
        return over.set_(untyped, 0, (untyped.nbytes() // dtype.itemsize,), (1,))


def code_of_tensor(storage: Any, expression: str) -> str:
    """Return the code of `tensor_of` a storage that `expression` reaches; nothing runs."""
    dtype, device = tensor_of(storage).dtype, storage.device.type
    where = f", device={device!r}" if device != "cpu" else ""
    return f"torch.empty(0, dtype={dtype}{where}).set_({expression})"


FLOAT4: Any = getattr(torch, "float4_e2m1fn_x2", None)
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
"""Dtypes of the bits of elements, by the bytes of an element, that torch 2.7 can index and copy."""
PACKED_BITS: dict[torch.dtype, int] = {torch.quint4x2: 4, torch.quint2x4: 2}
"""Bits of a code if one byte holds several."""


def reach_of(t: torch.Tensor) -> int:
    """Return the bytes from the start of the storage to the end of the last element."""
    if not t.numel():
        return 0
    bits = PACKED_BITS.get(t.dtype, 8 * t.element_size())
    return -(-(int(t.storage_offset()) + num_reached(t.shape, t.stride())) * bits // 8)


def is_held(t: torch.Tensor) -> bool:
    """Return whether the storage holds all elements of a strided tensor; torch may crash if not."""
    reach = reach_of(t)
    held = torch.Tensor.untyped_storage(t).nbytes()
    return not reach or bool(reach <= held and torch_private.storage_address(t))


def indexed(values: torch.Tensor, places: Places) -> torch.Tensor:
    """Return the elements at `places`, always in new memory."""
    if [*map(len, places)] == [*values.shape] and places == [*map(list, map(range, values.shape))]:
        return quietly(values.clone)
    if all(map(_is_run, places, values.shape)):
        # Of an index tensor, torch looks at every element.
        part = values[tuple([slice(place[0], place[-1] + 1) for place in places])]
        return quietly(part.clone, memory_format=torch.contiguous_format)
    # One index tensor for each dimension, which broadcast against each other.
    index = [
        torch.tensor(place, dtype=torch.int64, device=values.device).view([-1] + [1] * (len(places) - dim - 1))
        for dim, place in enumerate(places)
    ]
    # torch 2.7 cannot index float8 and most unsigned integers.
    bits = values.view(BITS[values.itemsize])
    return quietly(bits.__getitem__, tuple(index)).view(values.dtype)


def _is_run(place: list[int], size: int) -> bool:
    """Return whether these are all indices of a dimension, in order."""
    if not place or place[0] < 0 or place[-1] >= size or place[-1] - place[0] != len(place) - 1:
        return False
    return place == [*range(place[0], place[-1] + 1)]

"""Strip a tensor to what torch knows of it, describe kinds, and name the steps of a conversion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.quiet import plain, quietly
from tensornp.core.tensor.strides import num_reached
from tensornp.errors import NotReadError

MAX_NUMEL = 4_000_000
"""Elements that a display lays out at most, for kinds that cannot be indexed."""
Places = list[Sequence[int]]
"""Indices along each dimension; a `range` is read as a slice."""


class Bare:
    """A tensor's attributes as `torch.Tensor` itself defines them, whatever its class overrides."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.Tensor, name).__get__(self._tensor)


def over_storage(raw: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the same elements as `dtype`, without lazy bits and scales."""
    over = quietly(torch.empty, 0, dtype=dtype, device=raw.device)
    return over.set_(raw.untyped_storage(), raw.storage_offset(), raw.shape, raw.stride())


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
    slices = [slice(place.start, place.stop, place.step) for place in places if isinstance(place, range)]
    if len(slices) == len(places):
        return quietly(values[tuple(slices)].clone, memory_format=torch.contiguous_format)
    # One index tensor for each dimension, which broadcast against each other.
    index = [
        torch.tensor(place, dtype=torch.int64, device=values.device).view([-1] + [1] * (len(places) - dim - 1))
        for dim, place in enumerate(places)
    ]
    # torch 2.7 cannot index float8 and most unsigned integers.
    bits = values.view(BITS[values.itemsize])
    return quietly(bits.__getitem__, tuple(index)).view(values.dtype)


DataState = Literal["available", "meta", "fake", "uninitialized", "freed", "wrapped", "remote"]


class Form(NamedTuple):
    state: DataState
    kind: Kind
    wrapper: str = ""


def is_of_class(t: Any, name: str, module: str) -> bool:
    """Return whether `t` is of one of torch's own classes, which need not be imported to be recognized."""
    return any(base.__name__ == name and base.__module__.startswith(module) for base in type(t).__mro__)


class Step(StrEnum):
    """The steps of a conversion, in their order."""

    STAND_IN = "stand in"
    WAIT = "wait"
    TO_LOCAL = "to local"
    GATHER = "gather from all ranks"
    UNBIND = "unbind"
    DETACH = "detach"
    TO_HOST = "copy to host"
    TO_DENSE = "to dense"
    DEQUANTIZE = "dequantize"
    RESOLVE_CONJ = "resolve conjugate"
    RESOLVE_NEG = "resolve negative"
    UNPACK = "unpack"
    WIDEN = "widen"
    COPY = "copy"
    VIEW_BITS = "view bits"
    CAST = "cast"
    MASK = "mask"


class Obstacle(NamedTuple):
    detail: str
    """After "a float32 tensor": "with the conjugate bit set"; empty if dtype and device say it already."""
    clause: str
    """After "copy: ": "on cuda:0"."""


class TooManyError(NotReadError):
    """All elements would be laid out to print a few, and they are too many."""


class Kind:
    """A way to hold values. Each kind is one object of a subclass; its methods are called `outside_modes`.

    `step` leads to the values. `obstacle` is why no tensor of this kind can share memory, with ``{layout}``,
    ``{dtype}`` and ``{type_name}``. `access` is the expression of the inner tensor, and `code` that of the whole
    conversion, around ``{inner}``. The bytes of the tensors inside are not the values if it `has_other_meaning`.
    `indexed_by` is the call that makes elements by index: ``.to_dense()``. `class_of_torch` names
    its class and module.
    """

    name = ""
    step: Step | None = None
    label = ""
    sentence = ""
    obstacle: Obstacle | None = None
    access = ""
    code = "{inner}"
    values_dtype = ""
    has_strides = False
    has_other_meaning = False
    gives_several = False
    is_masked = False
    class_of_torch: tuple[str, ...] = ()
    indexed_by = ""
    refusal = ""

    def __str__(self) -> str:
        return self.name

    def holds(self, t: Any, bare: Any) -> bool:
        """Return whether `t` is of this kind; `bare` has its attributes as `torch.Tensor` defines them."""
        return bool(self.class_of_torch) and is_of_class(t, *self.class_of_torch)

    def form(self, t: Any) -> Form:
        return Form("available", self)

    def inner(self, t: Any) -> Any:
        """Return the tensor inside that holds the values, or None; does not wait."""
        return None

    def awaited(self, t: Any) -> Any:
        return self.inner(t)

    def parts(self, t: Any) -> list[torch.Tensor]:
        return []

    def detail(self, t: Any) -> str:
        return ""

    def few(self, t: Any, places: Places) -> torch.Tensor:
        """Return the elements at `places`, dense and in new memory; raise NotReadError if they are not there."""
        numel = math.prod(Bare(t).shape)
        if numel > MAX_NUMEL:
            raise TooManyError(
                f"the values are not shown: t{self.indexed_by} would make all {numel:,} elements; use to_numpy"
            )
        return indexed(self.dense(t), places)

    def stored(self, t: Any) -> list[torch.Tensor]:
        """Return strided tensors with all values; elements that they lack are zeros."""
        return [self.dense(t)]

    def dense(self, t: Any) -> torch.Tensor:
        """Return all values as a strided tensor, without a copy if it is one."""
        return plain(t)

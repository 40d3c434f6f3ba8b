"""Recognize the kind of a tensor, in an order that keeps asking safe."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]  # public, but not listed

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import is_tensor, own_attributes
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.text import legible
from tensornp.core.lowlevel.torch_private import is_of_torch, is_strided
from tensornp.core.tensor import kinds
from tensornp.core.tensor.kinds import Kind

DataState = Literal["available", "meta", "fake", "uninitialized", "freed", "wrapped", "remote"]


class Form(NamedTuple):
    """Whether a tensor has values to read, and how it holds them; `wrapper` names what stands before them."""

    state: DataState
    kind: Kind = kinds.STRIDED
    wrapper: str = ""


class Bare:
    """A tensor's attributes as `torch.Tensor` itself defines them, whatever its class overrides."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.Tensor, name).__get__(self._tensor)


def form_of(t: torch.Tensor) -> Form:
    """Return how `t` holds its values, asked in the order that keeps asking safe; no value is read."""
    cls = type(t)
    if cls is torch.Tensor or cls is torch.nn.Parameter:
        return _held_by_torch(t)
    if issubclass(cls, UninitializedTensorMixin):
        return Form("uninitialized", wrapper="an uninitialized module")
    if _is_from_torch(cls, "FakeTensor", "torch._subclasses"):
        return Form("fake", wrapper="FakeTensorMode")
    if _is_from_torch(cls, "FunctionalTensor", "torch._subclasses"):
        return Form("wrapped", wrapper="functionalization")
    if cls.__torch_dispatch__ not in torch_private.PLAIN_DISPATCH and not torch_private.is_functorch_wrapper(t):
        return _held_by_subclass(t)
    # A plain tensor of memory that was never written, which stands for a mask that torch makes when it is used.
    if _is_from_torch(cls, "CausalBias", "torch.nn.attention"):
        return Form("wrapped", wrapper="CausalBias, which is no tensor of values,")
    return _held_by_torch(Bare(t), t)


def _held_by_torch(bare: Any, tensor: torch.Tensor | None = None) -> Form:
    """Return what is known of a tensor by the attributes of torch itself, which `bare` gives."""
    t = bare if tensor is None else tensor
    if torch_private.is_functorch_wrapper(t):
        return Form("wrapped", wrapper="a torch.func transform")
    place = bare.device.type
    # A lazy tensor is functionalized inside, so this question comes first.
    if place in ("lazy", "xla"):
        return Form("available", kinds.LAZY)
    if torch_private.is_functional_wrapper(t):
        return Form("wrapped", wrapper="functionalization")
    if place == "meta":
        return Form("meta")
    if bare.is_nested:
        return Form("available", kinds.NESTED)
    if bare.is_quantized:
        return Form("available", kinds.QUANTIZED)
    if bare.layout == torch.strided:
        return Form("available", kinds.ZERO if torch_private.is_zero_tensor(t) else kinds.STRIDED)
    return Form("available", kinds.MKLDNN if torch_private.is_mkldnn(bare.layout) else kinds.SPARSE)


def _held_by_subclass(t: Any) -> Form:
    """Return what is known of a class that computes its own operators; its own storage is not its value."""
    cls = type(t)
    if _is_from_torch(cls, "DTensor", "torch.distributed"):
        return Form("available" if is_whole(t) else "remote", kinds.LOCAL, legible(str(tuple(t.placements))))
    if is_of_collective(t):
        return Form("available", kinds.PENDING)
    if _is_from_torch(cls, "MaskedTensor", "torch.masked"):
        return Form("available", kinds.MASKED)
    if _is_from_torch(cls, "NestedTensor", "torch.nested"):
        return Form("available", kinds.NESTED)
    if cls.dequantize is not torch.Tensor.dequantize:
        return Form("available", kinds.DEQUANTIZED)
    return Form("wrapped", wrapper=cls.__name__)


def is_of_collective(t: Any) -> bool:
    """Return whether `t` is the result of an asynchronous collective."""
    return _is_from_torch(type(t), "AsyncCollectiveTensor", "torch.distributed")


def _is_from_torch(cls: type, name: str, module: str) -> bool:
    """Return whether `cls` is one of torch's own classes, which need not be imported to be recognized."""
    return any(base.__name__ == name and base.__module__.startswith(module) for base in cls.__mro__)


def is_whole(dtensor: Any) -> bool:
    """Return whether this rank's part of a DTensor is all of it: replicated, or spread over one rank only."""
    ranks = tuple(dtensor.device_mesh.shape)
    if not all([place.is_replicate() or n == 1 for place, n in zip(dtensor.placements, ranks, strict=True)]):
        return False
    return tuple(dtensor.to_local().shape) == tuple(dtensor.shape)


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


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return an alias of `tensor` outside of autograd, stripped of its class; call it `outside_modes`."""
    values = quietly(torch.Tensor.detach, tensor)
    return values if type(values) is torch.Tensor else quietly(torch.Tensor.as_subclass, values, torch.Tensor)


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


def inner_names(t: torch.Tensor) -> tuple[str, ...]:
    """Return the names of attributes that hold tensors; properties do not run."""
    return tuple(name for name, value in own_attributes(t) if is_tensor(value))

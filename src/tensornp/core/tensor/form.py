"""How a tensor holds its values: by strides, in another layout, or in other tensors, which are reached from here."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]  # public, but not listed

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import class_name, is_subclass, is_tensor, module_name, mro_of, own_attributes
from tensornp.core.lowlevel.unheard import unheard

DataState = Literal["available", "meta", "fake", "uninitialized", "freed", "wrapped", "remote"]
Form = Literal[
    "strided", "sparse", "mkldnn", "quantized", "zero", "lazy", "dequantized", "nested", "masked", "local", "pending"
]


class Holding(NamedTuple):
    """Whether a tensor has values to read, and in which form; `wrapper` names what stands before them."""

    state: DataState
    form: Form = "strided"
    wrapper: str = ""


class Bare:
    """A tensor's attributes as `torch.Tensor` itself defines them, whatever its class overrides."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.Tensor, name).__get__(self._tensor)


def holding_of(t: torch.Tensor) -> Holding:
    """Return how `t` holds its values, asked in the order that keeps asking safe; no value is read."""
    kind = type(t)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return _held_by_torch(t)
    if is_subclass(kind, UninitializedTensorMixin):
        return Holding("uninitialized", wrapper="an uninitialized module")
    if _is_kind(kind, "FakeTensor", "torch._subclasses"):
        return Holding("fake", wrapper="FakeTensorMode")
    if _is_kind(kind, "FunctionalTensor", "torch._subclasses"):
        return Holding("wrapped", wrapper="functionalization")
    if kind.__torch_dispatch__ not in torch_private.PLAIN_DISPATCH and not torch_private.is_functorch_wrapper(t):
        return _held_by_subclass(t)
    # A plain tensor of memory that was never written, which stands for a mask that torch makes when it is used.
    if _is_kind(kind, "CausalBias", "torch.nn.attention"):
        return Holding("wrapped", wrapper="CausalBias, which is no tensor of values,")
    return _held_by_torch(Bare(t), t)


def _held_by_torch(bare: Any, tensor: torch.Tensor | None = None) -> Holding:
    """Return what is known of a tensor by the attributes of torch itself, which `bare` gives."""
    t = bare if tensor is None else tensor
    if torch_private.is_functorch_wrapper(t):
        return Holding("wrapped", wrapper="a torch.func transform")
    place = bare.device.type
    # A lazy tensor is functionalized inside, so this question comes first.
    if place in ("lazy", "xla"):
        return Holding("available", "lazy")
    if torch_private.is_functional_wrapper(t):
        return Holding("wrapped", wrapper="functionalization")
    if place == "meta":
        return Holding("meta")
    if bare.is_nested:
        return Holding("available", "nested")
    if bare.is_quantized:
        return Holding("available", "quantized")
    if bare.layout == torch.strided:
        return Holding("available", "zero" if torch_private.is_zero_tensor(t) else "strided")
    return Holding("available", "mkldnn" if torch_private.is_mkldnn(bare.layout) else "sparse")


def _held_by_subclass(t: Any) -> Holding:
    """Return what is known of a class that computes its own operators; its own storage is not its value."""
    kind = type(t)
    if _is_kind(kind, "DTensor", "torch.distributed"):
        return Holding("available" if _is_whole(t) else "remote", "local", str(tuple(t.placements)))
    if is_of_collective(t):
        return Holding("available", "pending")
    if _is_kind(kind, "MaskedTensor", "torch.masked"):
        return Holding("available", "masked")
    if _is_kind(kind, "NestedTensor", "torch.nested"):
        return Holding("available", "nested")
    if kind.dequantize is not torch.Tensor.dequantize:
        return Holding("available", "dequantized")
    return Holding("wrapped", wrapper=class_name(kind))


def is_of_collective(t: Any) -> bool:
    """Return whether `t` stands for the result of an asynchronous collective, which may or may not have arrived."""
    return _is_kind(type(t), "AsyncCollectiveTensor", "torch.distributed")


def _is_kind(kind: type, name: str, module: str) -> bool:
    """Return whether `kind` is one of torch's own classes, which need not be imported to be recognized."""
    return any(class_name(cls) == name and module_name(cls).startswith(module) for cls in mro_of(kind))


def _is_whole(dtensor: Any) -> bool:
    """Return whether this rank's part of a DTensor is all of it: replicated, or spread over one rank only."""
    ranks = tuple(dtensor.device_mesh.shape)
    replicated = all(place.is_replicate() or n == 1 for place, n in zip(dtensor.placements, ranks, strict=True))
    return replicated and tuple(dtensor.to_local().shape) == tuple(dtensor.shape)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return an alias of `tensor` outside of autograd, stripped of its class; call it `undisturbed`."""
    values = torch.Tensor.detach(tensor)
    return values if type(values) is torch.Tensor else torch.Tensor.as_subclass(values, torch.Tensor)


def over_storage(raw: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the tensor over the same elements that takes them for `dtype`, without lazy bits or a scheme of scales."""
    over = torch.empty(0, dtype=dtype, device=raw.device)
    return over.set_(raw.untyped_storage(), raw.storage_offset(), raw.shape, raw.stride())


def held_tensor(t: Any, form: Form) -> torch.Tensor | None:
    """Return the tensor in which `t` holds its values, if it holds them in another one; nothing is waited for."""
    held: torch.Tensor | None = None
    if form == "local":
        held = t.to_local()
    elif form == "pending":
        held = t.elem
    elif form == "masked":
        held = t.get_data()
    elif form == "nested":
        held = t.values()
    return held


def parts_of(t: Any, form: Form) -> list[torch.Tensor]:
    """Return the tensors besides a `held_tensor` that reading `t` would read: indices, values, scales, a mask."""
    parts: list[torch.Tensor] = []
    if form == "sparse" and t.layout == torch.sparse_coo:
        parts += torch_private.stored_elements(t)
    elif form == "sparse":
        parts += (*compressed_indices(t), t.values())
    elif form == "masked":
        parts += [mask_of(t)]
    elif form == "nested" and t.layout == torch.jagged:
        parts += [part for part in (t.offsets(), t.lengths()) if part is not None]
    elif form == "nested":
        parts += torch_private.nested_sizes(t)
    elif form == "quantized" and "per_channel" in detail_of(t, form):
        parts += [t.q_per_channel_scales(), t.q_per_channel_zero_points()]
    return parts


def compressed_indices(sparse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pointers to rows (or columns), and the indices of the columns (or rows)."""
    if sparse.layout in (torch.sparse_csr, torch.sparse_bsr):
        return sparse.crow_indices(), sparse.col_indices()
    return sparse.ccol_indices(), sparse.row_indices()


def mask_of(t: Any) -> torch.Tensor:
    """Return the mask of a MaskedTensor, True where an element is shown; one without autograd or copy."""
    mask: torch.Tensor = t.get_mask()
    return mask


ACCESS: dict[Form, str] = {
    "local": "t.to_local()",
    "pending": "t.wait()",
    "masked": "t.get_data()",
    "nested": "part",
}
"""The expression by which a program reaches what `held_tensor` returns; for a nested tensor, each of its parts."""


def detail_of(t: Any, form: Form) -> str:
    """Return a few words on the form: how many elements a sparse tensor stores, how a quantized one is scaled."""
    if form == "sparse":
        return f"{torch_private.num_stored(t):,} stored"
    if form == "nested":
        num_parts = t.size(0)
        return f"{num_parts:,} part{'s' * (num_parts != 1)}"
    if form == "local":
        return ", ".join(map(str, t.placements))
    if form == "pending":
        return "arrived" if t.completed else "pending"
    if form == "quantized":
        try:
            return str(t.qscheme()).removeprefix("torch.")
        except RuntimeError:
            # `torch.empty` makes quantized tensors without a scale.
            return ""
    return ""


STORAGES = (torch.UntypedStorage, torch.TypedStorage)


def is_storage(obj: Any) -> bool:
    """Return whether `obj` is the memory under a tensor, by its type."""
    return any(is_subclass(type(obj), kind) for kind in STORAGES)


def tensor_of(storage: Any) -> torch.Tensor:
    """Return the one-dimensional tensor over all of a storage: bytes, or elements where the storage has a dtype."""
    typed = is_subclass(type(storage), torch.TypedStorage)
    with modes.undisturbed():
        untyped = torch_private.untyped(storage) if typed else storage
        dtype: torch.dtype = storage.dtype if typed else torch.uint8
        over: torch.Tensor = torch.empty(0, dtype=dtype, device=untyped.device)
        return over.set_(untyped, 0, (untyped.nbytes() // dtype.itemsize,), (1,))


def inner_names(t: torch.Tensor) -> tuple[str, ...]:
    """Return the names of the attributes that hold tensors; no property is called, and nothing of the class runs."""
    return tuple(name for name, value in own_attributes(t) if is_tensor(value))


unheard(globals())

"""Read the metadata of tensors; no value is read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import torch

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.lowlevel.attributes import an_instance, is_array, is_tensor, is_weight, own_attributes, refused
from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.core.lowlevel.torch_private import is_unsharded
from tensornp.core.tensor.facts import StorageSpan, TensorInfo
from tensornp.core.tensor.form import Bare, Form, is_held, reach_of
from tensornp.core.tensor.kinds import LOCAL, SPARSE, STRIDED, form_of, parts_of
from tensornp.core.tensor.shards import shard_facts
from tensornp.core.tensor.stand_ins import StandIn, is_tensor_like, stand_in_of
from tensornp.core.tensor.strides import is_in_order
from tensornp.errors import NotATensorError


@modes.outside_modes
def inspect(tensor: torch.Tensor) -> TensorInfo:
    """Return the metadata of a tensor, without reading values.

    No mode, tracer, hook or subclass is called; works for tensors without data too, whose `data_state` says so.
    Cost: some tens of microseconds, no device synchronization.

    Raises
    ------
    NotATensorError
        If `tensor` is neither a `torch.Tensor` nor of a class that stands for one.
    UnsupportedTensorError
        If such a class cannot tell for which.
    """
    check_tensor(tensor, "inspect")
    return _read(tensor)


def check_tensor(obj: Any, caller: str) -> None:
    if not is_tensor_like(obj):
        said = refused(obj, "tnp.to_tensor(entry.to_numpy())") if is_weight(obj) else an_instance(obj)
        cure = f"; of an array a, tnp.{caller}(tnp.to_tensor(a))" if is_array(obj) else ""
        raise NotATensorError(f"{caller} takes a torch.Tensor, not {said}{cure}")


def _read(tensor: torch.Tensor) -> TensorInfo:
    cls = type(tensor)
    stand_in = stand_in_of(tensor)
    if stand_in is not None:
        return inspect_stand_in(tensor, stand_in)[0]
    # Classes of torch itself override attributes for good reasons; others are stripped to what torch knows.
    t: Any = tensor if cls.__module__.partition(".")[0] == "torch" else Bare(tensor)
    own = dict(own_attributes(tensor))
    is_parameter = issubclass(cls, torch.nn.Parameter) or bool(own.get("_is_param"))
    form = form_of(tensor)
    inner = missing = None
    # One with strides holds its values itself.
    if form.kind is not STRIDED:
        held = form.kind.inner(tensor)
        if held is not None:
            tracked = Bare(tensor).requires_grad
            inner = dataclasses.replace(_read(held), requires_grad=tracked, _access=form.kind.access)
        if inner is not None and form.state == "available":
            form = form._replace(state=inner.data_state)
        elif inner is not None and inner.data_state in ("meta", "fake", "freed"):
            # No rank has what this one's part lacks.
            form = form._replace(state=inner.data_state, wrapper="")
        parts = parts_of(tensor, has_all=True) if form.state == "available" else []
        missing = next((_storage_span(part, part) for part, _ in parts if not is_held(part)), None)
    is_made = form.state != "uninitialized"
    if missing is not None or not is_made:
        held = t if is_made else t.data
        shape = _sizes(held.shape) if is_made and not form.kind.gives_several else ()
        return TensorInfo(
            cls.__name__, shape, held.dtype, held.dtype.itemsize, 0, held.device, held.layout, kind=form.kind,
            requires_grad=t.requires_grad, is_parameter=is_parameter, data_state="freed" if is_made else form.state,
            storage=missing, _wrapper="" if is_made else form.wrapper,
        )  # fmt: skip
    is_buffer = bool(own.get("_is_buffer")) or (False if is_parameter else None)
    return _with_shape(tensor, t, form, inner, is_parameter=is_parameter, is_buffer=is_buffer)


@modes.outside_modes
def inspect_stand_in(obj: Any, stand_in: StandIn) -> tuple[TensorInfo, torch.Tensor]:
    kind, values = stand_in.resolved(obj)
    inner = dataclasses.replace(_read(values), _access=kind.access)
    info = dataclasses.replace(
        inner, type_name=type(obj).__name__, kind=kind, detail=kind.detail(obj), inner=inner, storage=None, _access="t"
    )
    return info, values


def _with_shape(tensor: torch.Tensor, t: Any, form: Form, inner: TensorInfo | None, **more: Any) -> TensorInfo:
    state, kind = form.state, form.kind
    shape = _nested_shape(t) if kind.gives_several else _sizes(t.shape)
    strided = t.layout == torch.strided and not kind.gives_several and -1 not in shape
    stride = _sizes(t.stride()) if strided else None
    has_storage = strided and state == "available" and kind.has_strides
    storage = _storage_span(tensor, t) if has_storage else None
    held = storage
    if kind.gives_several and t.layout == torch.strided and state == "available":
        own = t.untyped_storage()
        held = StorageSpan(own.data_ptr(), own.nbytes(), t.numel() * t.element_size())
    if held is not None and (held.reach > held.nbytes or (held.address == 0 and held.reach)):
        state, storage = "freed", held
    has_parts = state == "available" and (kind is SPARSE or kind.has_other_meaning)
    is_inference = t.is_inference()
    is_on_cpu = storage is not None and t.device.type == "cpu"
    return TensorInfo(
        type_name=type(tensor).__name__,
        shape=shape,
        dtype=t.dtype,
        itemsize=t.dtype.itemsize,
        numel=_numel(tensor, shape, inner) if form.state == "available" else 0 if -1 in shape else math.prod(shape),
        device=t.device,
        layout=t.layout,
        stride=stride,
        storage_offset=int(t.storage_offset()) if strided and state != "fake" else None,
        is_conj=t.is_conj(),
        is_neg=t.is_neg(),
        is_shared=is_on_cpu and t.untyped_storage().is_shared(),
        # Only CUDA pins memory, and asking would initialize it.
        is_pinned=is_on_cpu and torch.cuda.is_initialized() and t.is_pinned(),
        is_inference=is_inference,
        is_contiguous=stride is not None and is_in_order(shape, stride),
        version=None if is_inference or state in ("fake", "wrapped", "remote") else t._version,
        storage=storage,
        _is_unsharded=storage is not None and is_unsharded(tensor),
        data_state=state,
        _wrapper=form.wrapper,
        _inner_names=_inner_names(tensor) if state == "wrapped" else (),
        kind=kind,
        detail=kind.detail(tensor) if state in ("available", "remote") or kind is LOCAL else "",
        inner=inner,
        _part_nbytes=sum({id(part): part.nbytes for part, _ in parts_of(tensor)}.values()) if has_parts else None,
        shard=shard_facts(tensor, shape, inner.shape) if kind is LOCAL and inner is not None else None,
        **_graph_facts(tensor, t),
        **more,
    )


def _inner_names(tensor: torch.Tensor) -> tuple[str, ...]:
    inside = own_attributes(tensor)
    return tuple([name for name, one in inside if is_tensor(one) and form_of(one).state != "wrapped"])


def _sizes(sizes: Sequence[Any]) -> tuple[int, ...]:
    """Return sizes as ints; -1 for symbolic ones, whose comparison would add a guard."""
    return tuple([n if type(n) is int else int(n) if isinstance(n, (int, torch.Tensor)) else -1 for n in sizes])


def _nested_shape(t: Any) -> tuple[int, ...]:
    shape: list[int] = []
    for dim in range(t.dim()):
        try:
            shape += _sizes([t.size(dim)])
        except RuntimeError:
            shape.append(-1)
    return tuple(shape)


def _numel(t: Any, shape: tuple[int, ...], inner: TensorInfo | None) -> int:
    """Return the number of elements; holes of jagged tensors do not count."""
    if -1 not in shape:
        return math.prod(shape)
    if t.layout != torch.jagged:
        return int(t.numel())
    return inner.numel if inner is not None and t.lengths() is None else sum(part.numel() for part in t.unbind())


def _graph_facts(tensor: torch.Tensor, t: Any) -> dict[str, Any]:
    try:
        node = t.grad_fn
        is_leaf, grad_fn = (t.is_leaf, None) if node is None else (False, type(node).__name__)
    except RuntimeError:
        # torch raises on views that were changed in place under no_grad.
        is_leaf, grad_fn = False, "unknown"
    retains_grad = not is_leaf and bool(t.retains_grad)
    unguarded = Unguarded()
    grad = unguarded.grad_of(tensor) if is_leaf or retains_grad else None
    return {
        "requires_grad": t.requires_grad,
        "is_leaf": is_leaf,
        "grad_fn": grad_fn,
        "has_grad": None if unguarded.left_out else grad is not None,
        "_retains_grad": retains_grad,
    }


def _storage_span(tensor: torch.Tensor, t: Any) -> StorageSpan | None:
    try:
        storage = t.untyped_storage()
        return StorageSpan(torch_private.address_of(tensor), storage.nbytes(), reach_of(t))
    except (RuntimeError, NotImplementedError):
        return None

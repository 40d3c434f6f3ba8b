"""The only place that turns a tensor into an array: it carries out what a plan says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from tensornp.core.convert import float4
from tensornp.core.convert.budget import Budget, within_budget
from tensornp.core.convert.dense import dense, dequantized
from tensornp.core.convert.page_protection import with_page_protection
from tensornp.core.convert.plan import ConversionPlan, flag
from tensornp.core.convert.sharded import decide_shard
from tensornp.core.convert.view_share_copy import check_shard
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import error_text, is_array, is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.ordinary import is_of_torch
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.lowlevel.unsharded import is_unsharded
from tensornp.core.memory.footprint import check_parts
from tensornp.core.memory.saved import saved_for
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.containers import is_container
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import STORAGES, form_of, is_storage, plain, tensor_of
from tensornp.core.tensor.info import check_tensor, inspect, inspect_stand_in
from tensornp.core.tensor.map_leaves import map_leaves
from tensornp.core.tensor.reading import held_tensor, mask_of
from tensornp.core.tensor.stand_ins import is_tensor_like, stand_in_of, stood_for
from tensornp.core.tensor.steps import Step
from tensornp.core.tensor.weight import is_weight, refused
from tensornp.errors import NoDataError, NotATensorError, NotReadError, RanksError

_IS_ARRAY = "it is an array already, which tnp.card shows and tnp.to_tensor makes a tensor of"

_NATIVE = {getattr(torch, facts.name) for facts in dtypes.KNOWN.values() if facts.numpy and hasattr(torch, facts.name)}
_QUICK_NUMEL = 2**26
"""Elements below which nobody needs to ask how much memory is free: not over 256 MiB of float32."""
_WIDENED = {
    getattr(torch, facts.name): getattr(torch, facts.widened)
    for facts in dtypes.KNOWN.values()
    if facts.widened and facts.values_per_element == 1 and hasattr(torch, facts.name)
}


@never_compiled
def to_numpy(
    obj: Any,
    *,
    copy: bool | None = None,
    writeable: bool | None = None,
    dtype: object = None,
    max_nbytes: int | None = None,
    shard: str | None = None,
) -> Any:
    """Convert a tensor, or the tensors in a container, to NumPy.

    Parameters
    ----------
    obj : torch.Tensor, an object that stands for one, WeightEntry, or a container of tensors, nested
        Containers: dict and other mappings, list, tuple, namedtuple, deque, dataclass, TensorDict, PackedSequence. What
        is not a tensor inside one stays as it is, with the tensors that it may hold. A storage counts as a tensor of
        its bytes.
    copy : bool, optional
        As in `numpy.asarray`: None shares memory where that is possible and copies where not, True always copies,
        False never copies. What FSDP has gathered is copied unless it is False: it could not reshard what is shared.
    writeable : bool, optional
        None gives a read-only array where memory is shared and a writeable one where it is copied. True asks for a
        writeable array, shared where that is possible. False always gives a read-only one.
    dtype : optional
        None keeps every value exactly; what NumPy does not have (bfloat16, the float8 family, complex32) is widened,
        or comes as the zero-copy ml_dtypes array where ``copy=False`` or its own name is passed. Any other dtype
        converts, even where that loses values: `plan` says so beforehand.
    max_nbytes : int, optional
        Bytes that new arrays may take at most, all of a container together; None: what main memory has free.
    shard : {"local", "full"}, optional
        "local" takes the part of a DTensor on this rank. "full" calls its ``full_tensor()``, so all ranks must call
        this together. Other tensors are converted as without it.

    Returns
    -------
    numpy.ndarray, or the container
        Of the tensor's shape; shared memory keeps the tensor's strides. A nested tensor gives a list of arrays, a
        MaskedTensor a `numpy.ma.MaskedArray`; sparse, quantized and mkldnn tensors give their dense values. A mapping
        that is no dict, such as a TensorDict or a BatchEncoding, gives a dict.

    Raises
    ------
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    NoDataError
        If there are no values: meta, fake, uninitialized, freed, or inside a tracer or transform; or if this rank holds
        only a part of them.
    TooLargeError
        If the array would take more than `max_nbytes`.
    UnsupportedTensorError
        If that kind of tensor has no conversion; the message names what to convert instead.
    NotATensorError
        If `obj` is neither a tensor nor such a container.

    Notes
    -----
    Sharing an ordinary CPU tensor costs some microseconds and ends the storage's resizability, as every `Tensor.numpy`
    does. Other devices synchronize and transfer all elements. Only ``shard="full"`` issues a
    collective. The result of one that is under way is waited for.
    """
    if dtype is None and max_nbytes is None and shard is None and (writeable is None or writeable is False):
        array = _convert_plain(obj, copy, None)
        if array is not None:
            if writeable is False:
                array.flags.writeable = False
            return array
    check_shard(shard)
    if is_weight(obj):
        if max_nbytes is not None:
            values = obj._values() if shard is None else obj._values_here()
            _check_budget(values, max_nbytes, copy=copy, dtype=dtype, shard=shard)
        return obj.to_numpy(copy=copy, writeable=writeable, dtype=dtype, shard=shard)
    if is_storage(obj):
        obj = tensor_of(obj)
    if is_tensor_like(obj):
        return _convert(obj, Budget(max_nbytes), copy=copy, writeable=writeable, dtype=dtype, shard=shard)
    _check_container(obj)
    budget = Budget(max_nbytes)
    is_plain = dtype is None and writeable is None and shard is None

    def convert(leaf: Any) -> Any:
        array = _convert_plain(leaf, copy, budget) if is_plain else None
        if array is not None:
            return array
        leaf = tensor_of(leaf) if is_storage(leaf) else leaf
        return _convert(leaf, budget, copy=copy, writeable=writeable, dtype=dtype, shard=shard)

    return map_leaves(convert, obj, leaf_type=(torch.Tensor, *STORAGES))


def _check_container(obj: Any) -> None:
    if not is_container(obj):
        raise NotATensorError(
            "to_numpy takes a tensor, or a dict, list, tuple or dataclass with tensors inside, "
            f"not {refused(obj, of_model='pass its state_dict()', of_array=_IS_ARRAY)}"
        )


def _check_budget(values: Any, max_nbytes: int, *, copy: bool | None, dtype: object, shard: str | None) -> None:
    """Raise TooLargeError if the array of what a weight is read from, which is a copy of a file's, takes too much."""
    if is_tensor_like(values):
        plan(values, copy=copy, dtype=dtype, max_nbytes=max_nbytes, shard=shard)
    elif is_array(values):
        wanted = values.dtype if dtype is None else dtypes.resolve(dtypes.name_of(dtype))
        Budget(max_nbytes).take(values.size * wanted.itemsize if copy or wanted != values.dtype else 0)
    elif copy is not False:
        plan_from(values.info, copy=True, dtype=dtype, max_nbytes=max_nbytes)


def _convert(obj: Any, budget: Budget, **arguments: Any) -> Any:
    stand_in = stand_in_of(obj)
    if stand_in is None:
        planned = _planned(obj, **arguments)
        budget.take(planned.nbytes_copied)
        return execute(planned, obj)
    # It is asked once, and what is converted is what the plan was made for: it may give something else next time.
    info, values = inspect_stand_in(obj, stand_in)
    planned = _decided(info, **arguments)
    budget.take(planned.nbytes_copied)
    return execute(_without(planned, Step.STAND_IN), values)


@modes.outside_modes
def plan(
    tensor: torch.Tensor,
    *,
    copy: bool | None = None,
    writeable: bool | None = None,
    dtype: object = None,
    max_nbytes: int | None = None,
    shard: str | None = None,
) -> ConversionPlan:
    """Plan the conversion that `to_numpy` makes with the same arguments.

    Nothing is executed and no value is read.

    Where a writeable array is asked for, its ``warnings`` tell whether the graph behind `tensor` has saved it for
    backward; graphs that lead from it to other tensors are seen by `%tonumpy` only, which knows the notebook's names.
    Raises the same errors as `to_numpy` for the same arguments. No rank is asked, even for ``shard="full"``.
    """
    if is_storage(tensor):
        tensor = tensor_of(tensor)
    check_tensor(tensor, "plan")
    return within_budget(_planned(tensor, copy=copy, writeable=writeable, dtype=dtype, shard=shard), max_nbytes)


def _planned(tensor: torch.Tensor, **arguments: Any) -> ConversionPlan:
    info = inspect(tensor)
    if flag("writeable", arguments["writeable"]) and info.grad_fn is not None and is_tensor(tensor):
        saved = saved_for(tensor)
        info = replace(info, _saved_for=saved.names)
    return _decided(info, **arguments)


def plan_from(
    info: TensorInfo,
    *,
    copy: bool | None = None,
    writeable: bool | None = None,
    dtype: object = None,
    max_nbytes: int | None = None,
    shard: str | None = None,
) -> ConversionPlan:
    """Return the plan of a tensor whose metadata were read already; a search around it may have added to them."""
    return within_budget(_decided(info, copy=copy, writeable=writeable, dtype=dtype, shard=shard), max_nbytes)


def _decided(info: TensorInfo, **arguments: Any) -> ConversionPlan:
    info = with_page_protection(info) if flag("writeable", arguments["writeable"]) else info
    return decide_shard(info, **arguments)


def _convert_plain(tensor: Any, copy: bool | None, budget: Budget | None) -> np.ndarray[Any, Any] | None:
    """Return the array of an ordinary CPU tensor: read-only if shared, new if widened; None if it is not one.

    `plan` would decide the same, at several times the cost.
    """
    if (
        not is_of_torch(tensor)
        or not (copy is None or copy is False)
        or not modes.is_plain_without_modes(tensor)
        or not 0 < tensor.numel() < _QUICK_NUMEL
        or tensor.dim() > 32
    ):
        return None
    wide = None if tensor.dtype in _NATIVE else _WIDENED.get(tensor.dtype)
    if (wide is None and tensor.dtype not in _NATIVE) or (wide is not None and copy is False):
        return None
    last = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    if (last + 1) * tensor.element_size() > tensor.untyped_storage().nbytes():
        return None
    if copy is None and is_unsharded(tensor):
        return None
    if wide is not None and not tensor.untyped_storage().resizable():
        # It may be the memory of a file that was cut.
        return None
    values = tensor.detach() if tensor.requires_grad else tensor
    if wide is not None:
        if budget is not None:
            budget.take(tensor.numel() * wide.itemsize)
        return _numpy(values.to(wide))
    array = _numpy(values)
    array.flags.writeable = False
    return array


def array_of_copy(copy: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the array over a copy on the CPU that nobody else has, who would see that its storage is lent out."""
    array: np.ndarray[Any, Any] = copy.numpy(force=True)
    return array


def _numpy(values: torch.Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = values.numpy()
    return array


_ON_TENSOR: dict[Step, Callable[[torch.Tensor], torch.Tensor]] = {
    Step.TO_HOST: lambda t: quietly(t.cpu),
    Step.TO_DENSE: dense,
    Step.DEQUANTIZE: lambda t: quietly(t.dequantize),
    Step.RESOLVE_CONJ: lambda t: quietly(t.resolve_conj),
    Step.RESOLVE_NEG: lambda t: quietly(t.resolve_neg),
    Step.UNPACK: float4.unpack,
    Step.WIDEN: lambda t: t.to(_WIDENED.get(t.dtype, t.dtype)),
    Step.COPY: lambda t: quietly(t.clone),
}


@outside_modes
def execute(plan: ConversionPlan, tensor: torch.Tensor) -> Any:
    """Return the array, or the list of arrays, that `plan` describes, made from `tensor`, which stays as it is."""
    if plan.nbytes_copied:
        try:
            check_parts(tensor)
        except NotReadError as reason:
            # To copy it would end the process.
            raise NoDataError(f"the values cannot be read: {reason}") from None
    return carry_out(plan, tensor)


def carry_out(plan: ConversionPlan, tensor: Any) -> Any:
    """Return the array, or the list of arrays, that `plan` describes, made from `tensor`; call it `outside_modes`."""
    first = plan.steps[0] if plan.steps else None
    if first is Step.STAND_IN:
        return carry_out(replace(plan, steps=plan.steps[1:]), stood_for(tensor))
    if first is Step.UNBIND:
        return [carry_out(_without(plan, first), part) for part in tensor.unbind()]
    if first is Step.WAIT:
        return carry_out(_without(plan, first), tensor.trigger_wait())
    if first is Step.GATHER:
        return carry_out(_without(plan, first), _full(tensor))
    if first is Step.TO_LOCAL:
        return carry_out(_without(plan, first), held_tensor(tensor, form_of(tensor).kind))
    if Step.MASK in plan.steps:
        return _masked(plan, tensor)
    if Step.DEQUANTIZE in plan.steps and type(tensor).dequantize is not torch.Tensor.dequantize:
        return _array(_without(plan, Step.DEQUANTIZE), dequantized(tensor))
    return _array(plan, plain(tensor))


def _full(dtensor: Any) -> torch.Tensor:
    """Return the whole of a DTensor; all ranks of its mesh call this together."""
    try:
        return cast(torch.Tensor, dtensor.full_tensor())
    except Exception as error:
        raise RanksError(f"full_tensor() failed ({error_text(error)}); call it on all ranks of the mesh") from error


def _without(plan: ConversionPlan, step: Step) -> ConversionPlan:
    return replace(plan, steps=tuple(other for other in plan.steps if other is not step))


def _masked(plan: ConversionPlan, tensor: Any) -> Any:
    mask = dense(plain(mask_of(tensor)).cpu())
    return masked_array(
        carry_out(_without(plan, Step.MASK), held_tensor(tensor, form_of(tensor).kind)), mask, plan.writeable
    )


def masked_array(data: np.ndarray[Any, Any], mask: torch.Tensor, writeable: bool = True) -> Any:
    """Return the masked array of `data`; `mask` is True where torch shows an element, while NumPy's hides there."""
    hidden = _numpy(mask.logical_not())
    if not writeable:
        hidden.flags.writeable = False
    return np.ma.MaskedArray(data, mask=hidden)


def _array(plan: ConversionPlan, values: torch.Tensor) -> np.ndarray[Any, Any]:
    own = values.dtype
    for step in plan.steps:
        if step in _ON_TENSOR:
            values = _ON_TENSOR[step](values)
    if Step.VIEW_BITS in plan.steps:
        values = values.to(own).view(getattr(torch, dtypes.KNOWN[dtypes.name_of(own)].bits or ""))
    array = _numpy(values)
    if Step.CAST in plan.steps:
        array = _cast(array, plan.dtype)
    # The array that `numpy()` returned is frozen before any view of it is made: such a view cannot be thawed.
    if not plan.writeable:
        array.flags.writeable = False
    return array.view(plan.dtype) if Step.VIEW_BITS in plan.steps else array


def _cast(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    # The plan has said that a cast may be lossy; NumPy's warnings for overflow and dropped parts would say it again.
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and not dtypes.is_complex(dtype) and dtype.kind != "b":
            array = array.real
        return array.astype(dtype)

"""Convert tensors to arrays: the only place that does, and it carries out plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tensornp.core.convert import receipt
from tensornp.core.convert.budget import Budget, with_page_protection
from tensornp.core.convert.plan import ConversionPlan, decide, flag
from tensornp.core.lowlevel.attributes import Weight, error_text, is_tensor, is_weight, refused
from tensornp.core.lowlevel.modes import is_plain_without_modes, outside_modes
from tensornp.core.lowlevel.quiet import plain, quietly
from tensornp.core.lowlevel.torch_private import is_of_torch, is_unsharded
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.memory.saved import saved_for
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.containers import is_container, map_leaves
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import Kind, Obstacle, Step
from tensornp.core.tensor.info import check_tensor, inspect, inspect_stand_in
from tensornp.core.tensor.kinds import LOCAL, STRIDED, form_of
from tensornp.core.tensor.shards import ShardFacts, check_shard
from tensornp.core.tensor.stand_ins import is_tensor_like, stand_in_of
from tensornp.core.tensor.strides import num_reached
from tensornp.errors import NoDataError, NotATensorError, RanksError

_IS_ARRAY = "it is an array already; tnp.card shows it, tnp.to_tensor makes it a tensor"
_NATIVE = {getattr(torch, facts.name) for facts in dtypes.KNOWN.values() if facts.numpy and hasattr(torch, facts.name)}
_MAX_PLAIN_NUMEL = 2**40
_MAX_PLAIN_NDIM = 32


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
        Containers: dict and other mappings, list, tuple, namedtuple, deque, dataclass, TensorDict, PackedSequence.
        Other objects inside them stay.
    copy : bool, optional
        As in `numpy.asarray`: None shares memory if possible, True copies, False never copies. Parameters that FSDP
        has gathered are copied unless it is False, because FSDP could not reshard shared memory.
    writeable : bool, optional
        None gives a read-only array if memory is shared and a writeable one if it is copied. True asks for a
        writeable array, shared if possible. False gives a read-only one.
    dtype : optional
        None keeps every value exactly: dtypes that NumPy lacks (bfloat16, float8, complex32) are widened, or become
        the zero-copy ml_dtypes array with ``copy=False`` or their own name. Any other dtype converts, even if that
        loses values; `plan` reports it.
    max_nbytes : int, optional
        Limit of the bytes of all new arrays together; None is the free main memory.
    shard : {"local", "full"}, optional
        "local" takes the part of a DTensor on this rank. "full" calls its ``full_tensor()``, so all ranks must call
        this together. Other tensors are converted as without it.

    Returns
    -------
    numpy.ndarray, or the container
        Shared memory keeps the strides of the tensor. A nested tensor gives a list of arrays, a MaskedTensor a
        `numpy.ma.MaskedArray`; sparse, quantized and mkldnn tensors give their dense values. A mapping that is not a
        dict, such as a TensorDict or a BatchEncoding, gives a dict.

    Raises
    ------
    CopyRequiredError
        If ``copy=False`` and the memory cannot be shared.
    NoDataError
        If there are no values: meta, fake, uninitialized, freed, or inside a tracer or transform; or if this rank
        holds only a part of them.
    TooLargeError
        If the arrays would take more than `max_nbytes`.
    UnsupportedTensorError
        If the kind of tensor has no conversion; the message names what to convert instead.
    NotATensorError
        If `obj` is neither a tensor nor such a container.

    Notes
    -----
    - Sharing an ordinary CPU tensor takes some microseconds. Like every `Tensor.numpy`, it locks the storage.
    - Other devices synchronize and transfer all elements.
    - Only ``shard="full"`` runs a collective. The result of a pending one is waited for.
    """
    is_default = dtype is None and shard is None
    is_view = is_default and (copy is None or copy is False) and (writeable is None or writeable is False)
    # At once, and for each tensor of a container: benchmark rows "to_numpy of transposed" and "of a dict of 300".
    array = _convert_plain(obj) if is_view and max_nbytes is None else None
    if array is not None:
        return array
    check_shard(shard)
    budget = Budget(max_nbytes)
    arguments: dict[str, Any] = {"copy": copy, "writeable": writeable, "dtype": dtype, "shard": shard}

    def convert(leaf: Any) -> Any:
        array = _convert_plain(leaf) if is_view else None
        if array is not None:
            return array
        stand_in = stand_in_of(leaf)
        # The plan is carried out on the very tensor that it was made for.
        info, values = (_inspected(leaf, **arguments), leaf) if stand_in is None else inspect_stand_in(leaf, stand_in)
        return _execute(plan_from(info, budget, **arguments), values)

    if is_of_torch(obj) or is_tensor_like(obj):
        return convert(obj)
    if is_weight(obj):
        if max_nbytes is not None:
            budget.take(_nbytes_copied(obj, **arguments))
        return obj.to_numpy(**arguments)
    if not is_container(obj):
        raise NotATensorError(
            "to_numpy takes a tensor, or a dict, list, tuple or dataclass with tensors inside, "
            f"not {refused(obj, of_model='pass its state_dict()', of_array=_IS_ARRAY)}"
        )
    return map_leaves(convert, obj, is_tensor_like)


def _nbytes_copied(weight: Weight, *, copy: bool | None, shard: str | None, **arguments: Any) -> int:
    values = weight._values() if shard is None else weight._values_here()
    # Values in a file are always copied.
    info, is_copied = (inspect(values), copy) if is_tensor_like(values) else (values.info, True)
    return decide_shard(info, shard, copy=is_copied, **arguments).nbytes_copied


def _convert_plain(tensor: Any) -> np.ndarray[Any, Any] | None:
    """Return the read-only view of an ordinary CPU tensor (benchmark: plain to_numpy), or None."""
    if not is_of_torch(tensor) or not is_plain_without_modes(tensor) or tensor.dtype not in _NATIVE:
        return None
    if not 0 < tensor.numel() < _MAX_PLAIN_NUMEL or tensor.dim() > _MAX_PLAIN_NDIM:
        return None
    reach = tensor.numel() if tensor.is_contiguous() else num_reached(tensor.shape, tensor.stride())
    end = (tensor.storage_offset() + reach) * tensor.itemsize
    if end > tensor.untyped_storage().nbytes() or is_unsharded(tensor):
        return None
    array = numpy_of(tensor.detach())
    array.setflags(write=False)
    return array


@outside_modes
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

    Nothing is executed, no value is read, and no rank is called. Raises the same errors as `to_numpy`. If a writeable
    array is requested, its ``warnings`` tell whether the graph behind `tensor` has saved it for backward; `%tonumpy`
    also searches graphs that lead from it to other tensors.
    """
    check_tensor(tensor, "plan")
    arguments: dict[str, Any] = {"copy": copy, "writeable": writeable, "dtype": dtype, "shard": shard}
    return plan_from(_inspected(tensor, **arguments), Budget(max_nbytes), **arguments)


def _inspected(tensor: torch.Tensor, **arguments: Any) -> TensorInfo:
    info = inspect(tensor)
    if flag("writeable", arguments["writeable"]) and info.grad_fn is not None and is_tensor(tensor):
        info = replace(info, _saved_for=saved_for(tensor).names)
    return info


def plan_from(info: TensorInfo, budget: Budget, *, shard: str | None = None, **arguments: Any) -> ConversionPlan:
    info = with_page_protection(info) if flag("writeable", arguments.get("writeable")) else info
    made = decide_shard(info, shard, **arguments)
    budget.take(made.nbytes_copied)
    return made


class _Full(Kind):
    name = "full"
    step = Step.GATHER
    obstacle = Obstacle("in parts on several ranks", "gathered from all ranks")


def decide_shard(info: TensorInfo, shard: str | None, **arguments: Any) -> ConversionPlan:
    """Return the plan of `shard`; "local" and "full" change nothing for other tensors than DTensors."""
    check_shard(shard)
    facts = shard_of(info) if shard is not None else None
    if facts is not None and shard == "local":
        return with_scope(decide(as_local(info), **arguments), facts)
    if facts is not None and shard == "full" and info.data_state == "remote":
        if facts.coordinate is None:
            raise NoDataError(f"{facts}; convert it on these")
        info = replace(
            info, kind=_Full(), data_state="available", inner=None, storage=None, _access="t", is_conj=False,
            is_neg=False,
        )  # fmt: skip
    return decide(info, **arguments)


def shard_of(info: TensorInfo) -> ShardFacts | None:
    return info.shard or (shard_of(info.inner) if info.inner is not None else None)


def with_scope(plan: ConversionPlan, facts: ShardFacts) -> ConversionPlan:
    return replace(plan, reason=f"{plan.reason}; {facts.scope}")


def as_local(info: TensorInfo) -> TensorInfo:
    """Return the metadata of a DTensor as if its part on this rank were all of it."""
    facts = shard_of(info)
    if facts is not None and facts.pending:
        raise NoDataError(receipt.no_data_text(info))
    if info.data_state != "remote" or info.inner is None:
        return info
    inner = info.inner if info.kind is LOCAL else as_local(info.inner)
    return replace(info, data_state=inner.data_state, inner=inner)


@outside_modes
def _execute(plan: ConversionPlan, tensor: Any) -> Any:
    if Step.GATHER in plan.steps:
        try:
            full = tensor.full_tensor()
        except Exception as error:
            raise RanksError(f"full_tensor() failed ({error_text(error)}); call it on all ranks of the mesh") from error
        return array_of(plan, full)
    kind = form_of(tensor).kind
    if kind.gives_several:
        return [_execute(plan, part) for part in tensor.unbind()]
    if kind.is_masked:
        mask = quietly(kind.parts(tensor)[0].cpu)
        return masked_array(_execute(plan, kind.inner(tensor)), form_of(mask).kind.dense(mask), plan.writeable)
    inner = kind.awaited(tensor)
    return array_of(plan, tensor, kind) if inner is None else _execute(plan, inner)


def masked_array(data: np.ndarray[Any, Any], mask: Any, writeable: bool = True) -> Any:
    """Return the masked array of `data`; torch's `mask` is True at shown elements, NumPy's at hidden ones."""
    hidden = numpy_of(mask.logical_not())
    if not writeable:
        hidden.flags.writeable = False
    return np.ma.MaskedArray(data, mask=hidden)


def numpy_of(values: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the NumPy view of a CPU tensor; this locks its storage."""
    array: np.ndarray[Any, Any] = values.numpy()
    return array


def array_of(plan: ConversionPlan, tensor: torch.Tensor, kind: Kind = STRIDED) -> np.ndarray[Any, Any]:
    """Return the array of a tensor of one `kind`, as planned; call it `outside_modes`."""
    # Only the class knows the values of its codes, on whatever device.
    values = kind.dense(tensor) if kind.has_other_meaning else plain(tensor)
    own = values.dtype
    for step in plan.steps:
        if step in (Step.TO_DENSE, Step.DEQUANTIZE, Step.UNPACK) and not kind.has_other_meaning:
            values = kind.dense(values)
        elif step is Step.WIDEN:
            # Some dtypes are widened already to lay them out.
            wide = dtypes.KNOWN[dtypes.name_of(values.dtype)].widened
            values = values.to(getattr(torch, wide)) if wide else values
        elif step in _CALLS:
            values = quietly(getattr(values, _CALLS[step]))
    if Step.VIEW_BITS in plan.steps:
        values = values.to(own).view(getattr(torch, dtypes.KNOWN[dtypes.name_of(own)].bits or ""))
    array = numpy_of(values)
    if Step.CAST in plan.steps:
        # The plan has reported the loss; NumPy's warnings would repeat it.
        with np.errstate(all="ignore"):
            is_real = plan.dtype.kind not in "cb" and plan.dtype.name != "complex32"
            array = (array.real if array.dtype.kind == "c" and is_real else array).astype(plan.dtype)
    # A view of a frozen array cannot be thawed, so the array is frozen before any view is made.
    if not plan.writeable:
        array.flags.writeable = False
    return array.view(plan.dtype) if Step.VIEW_BITS in plan.steps else array


_CALLS = {
    Step.TO_HOST: "cpu", Step.RESOLVE_CONJ: "resolve_conj", Step.RESOLVE_NEG: "resolve_neg", Step.COPY: "clone",
}  # fmt: skip

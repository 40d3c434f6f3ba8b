"""How a tensor is handed to another library, decided from facts alone: a pure function, which needs neither library."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensornp.core.convert import receipt
from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.steps import Step
from tensornp.errors import CopyRequiredError

_SAME_BYTES = {Step.DETACH, Step.TO_HOST, Step.VIEW_BITS, Step.WAIT, Step.TO_LOCAL}
"""Steps that leave the bytes as they are on the tensor's own device."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """What the library that receives a tensor makes of it.

    Attributes
    ----------
    library : str
        Its name.
    is_constant : bool
        Whether its arrays cannot be written, and must be dense and aligned: JAX.
    reaches : bool
        Whether the array is to be on the tensor's own device, where the library works too.
    lends : bool
        Whether this torch hands out the tensor's dtype by DLPack.
    holds : numpy.dtype
        What it makes of the planned dtype.
    share, place : str
        Its code for the DLPack import of a tensor, and for a NumPy array; both with one ``{}``.
    keeps_order : bool
        Whether it reads the tensor's dimensions in the order in which they lie in memory.
    """

    library: str
    is_constant: bool
    reaches: bool
    lends: bool
    holds: np.dtype[Any]
    share: str
    place: str
    keeps_order: bool = True


def decide(
    to: Recipient, info: TensorInfo, free: ConversionPlan, copied: ConversionPlan, copy: bool | None = None
) -> ConversionPlan:
    """Return how a tensor is handed to a library: a pure function of facts, as `tensornp.core.convert.plan.decide` is.

    `free` and `copied` are the plans of `to_numpy` with ``writeable=True`` and with ``copy=True``. The values go from
    device to device where the steps of the result have no TO_HOST, and through NumPy otherwise.
    """
    obstacle = _obstacle(to, info, free)
    if copy is False and obstacle and info.numel:
        raise CopyRequiredError(
            f"{receipt.described(info, '')} cannot share memory with {to.library}, because {obstacle}; "
            "pass copy=None to allow a copy"
        )
    warnings = tuple(text for text in copied.warnings if "NumPy" not in text)
    result = replace(copied, writeable=not to.is_constant, code=to.place.format(copied.code), warnings=warnings)
    if not info.numel:
        return result
    detach = tuple(step for step in copied.steps if step is Step.DETACH)
    if copy is False:
        seen = "a write to the tensor is seen in the array" if to.is_constant else "each side sees the other's writes"
        return replace(
            result,
            steps=detach,
            shares_memory=True,
            nbytes_copied=0,
            reason=f"shares memory through DLPack: {seen}",
            code=to.share.format("t.detach()"),
            warnings=warnings + _hazards(to, info),
        )
    if copy is None:
        default = f"{to.library} {'takes its arrays for constants' if to.is_constant else 'may write its arrays'}"
        result = replace(result, reason=f"copy: {obstacle or f'{default}; pass copy=False to share'}")
    change = tuple(step for step in copied.steps if step not in (*_SAME_BYTES, Step.COPY))
    is_lent = to.keeps_order and (change == (Step.WIDEN,) or (not change and to.lends))
    if to.reaches and info.device.type != "cpu" and _has_memory(info) and is_lent:
        made = f".to(torch.{copied.dtype})" if change else ".clone()"
        steps = (*detach, *(change or (Step.COPY,)))
        result = replace(result, steps=steps, code=to.share.format(f"t.detach(){made}"))
    return result


def _obstacle(to: Recipient, info: TensorInfo, free: ConversionPlan) -> str:
    """Return what keeps the library from sharing the tensor's memory, as a clause; empty if nothing does."""
    change = [step for step in free.steps if step not in _SAME_BYTES]
    if change:
        _, is_copy, why = free.reason.partition("copy: ")
        return why if is_copy and info.device.type == "cpu" else f"it takes other bytes ({', '.join(change)})"
    if not to.reaches:
        return f"the tensor is on {info.device} and the array is not to be there"
    if not _has_memory(info):
        return "it has no memory of its own"
    if not to.lends:
        return f"this torch hands out no {dtypes.name_of(info.dtype)} by DLPack"
    if to.holds != free.dtype:
        return f"JAX has {free.dtype} only with jax_enable_x64"
    if not to.is_constant:
        return ""
    if info.is_pinned:
        return "its memory is pinned"
    if not _is_dense(info):
        return "JAX takes no strides that leave gaps or repeat elements"
    if not to.keeps_order:
        return "this version of JAX reads every tensor row by row"
    if info.device.type == "cpu" and info.storage and info.storage.address % 64:
        return "JAX needs memory that is aligned to 64 bytes"
    return ""


def _has_memory(info: TensorInfo) -> bool:
    return info.storage is not None and info.storage.address != 0 and not info.wrapper


def _is_dense(info: TensorInfo) -> bool:
    """Return whether the elements lie side by side, in whatever order of the dimensions."""
    expected = 1
    for stride, size in sorted((s, n) for n, s in zip(info.shape, info.stride or (), strict=True) if n > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def _hazards(to: Recipient, info: TensorInfo) -> tuple[str, ...]:
    """Return what may surprise in shared memory, a sentence each."""
    texts = []
    if to.is_constant:
        texts.append(
            "JAX takes the array for a constant: a torch write also changes results that are still being computed, "
            "and compiled functions may keep the old values"
        )
    elif info.requires_grad:
        texts.append(f"autograd does not see a {to.library} write, so gradients may be silently wrong")
    if info.may_overlap_itself:
        texts.append(f"several indices may address one element, so a {to.library} write may change more than one")
    if info.is_unsharded and info.device.type == "cpu":
        texts.append(receipt.UNSHARDED_HAZARD)
    if info.device.type == "cpu":
        texts.append("the storage can no longer be resized, as after any Tensor.numpy")
    else:
        texts.append("nothing locks the storage: if torch resizes or frees it, as FSDP does, the array reads junk")
    return tuple(texts)

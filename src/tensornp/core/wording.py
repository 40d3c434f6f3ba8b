"""What a plan says in words: why there is no data, why it copies, what may surprise, and the same in plain code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensornp.core import dtypes
from tensornp.core.steps import Step

if TYPE_CHECKING:
    from tensornp.core.info import TensorInfo


class Obstacle(NamedTuple):
    """What stands against sharing memory, in two grammatical forms."""

    detail: str
    """After "a float32 tensor": "with the conjugate bit set"; empty where dtype and device say it already."""
    clause: str
    """After "copy: ": "on cuda:0"."""


_NO_DATA = {
    "meta": "a meta tensor has a shape and a dtype but no data; load or initialize its weights on a real device first",
    "fake": "a fake tensor has no data while something is traced or compiled; convert outside of it",
    "uninitialized": "an uninitialized parameter has no shape and no data yet; run one forward pass first",
    "freed": "the storage holds {held:,} bytes but the shape needs {reach:,}: it was freed or shrunk; "
    "gather it first, with FSDP by module.unshard()",
    "wrapped": "the values are wrapped by {wrapper} and cannot be read here; convert what it returns",
    "remote": "this rank may hold only a part of a DTensor; convert t.to_local(), "
    "or t.full_tensor() on all ranks together",
}


def no_data_text(info: TensorInfo) -> str:
    """Return why a tensor has no values to give, and the cure."""
    held, reach = (info.storage.nbytes, info.storage.reach) if info.storage else (0, 0)
    return _NO_DATA[info.data_state].format(held=held, reach=reach, wrapper=info.wrapper)


def device_type(info: TensorInfo) -> str:
    """Return the kind of device, ``"cuda"`` for cuda:0."""
    return str(info.device).partition(":")[0]


def described(info: TensorInfo, detail: str) -> str:
    """Return a tensor as the subject of a sentence: "a bfloat16 tensor on cuda:0"."""
    where = "" if device_type(info) == "cpu" else f" on {info.device}"
    name = dtypes.name_of(info.dtype)
    return " ".join(f"{'an' if name[0] in 'i' else 'a'} {name} tensor{where} {detail}".split())


def reason_text(info: TensorInfo, shares: bool, frozen: bool, obstacle: Obstacle | None) -> str:
    """Return in one sentence why the array shares memory, or why it does not."""
    if not info.numel:
        return "empty: there is nothing to share or to copy"
    if not shares:
        return (
            f"copy: {obstacle.clause}" if obstacle else "copy: asked for, so no later write is seen on the other side"
        )
    if not frozen:
        return "shares memory, writeable: a write on either side is seen on the other"
    return "shares memory, read-only: a write to the tensor is seen in the array, and NumPy cannot write"


def warning_texts(
    info: TensorInfo, facts: dtypes.DtypeFacts, as_bits: bool, shares: bool, frozen: bool
) -> tuple[str, ...]:
    """Return what may surprise later, a sentence each."""
    warnings = []
    if as_bits:
        warnings.append(
            f"NumPy sums and averages this array in {facts.name} itself; reduce a.astype(np.float32) instead"
        )
    if shares and not frozen:
        if info.requires_grad:
            warnings.append("autograd does not see a NumPy write, so gradients may be silently wrong")
        if info.may_overlap_itself:
            warnings.append("several indices may address one element, so a NumPy write may change more than one")
        if info.is_inference:
            warnings.append("torch forbids writes to this inference tensor outside of inference mode; NumPy does not")
    return tuple(warnings)


def code_text(steps: tuple[Step, ...], facts: dtypes.DtypeFacts, target: np.dtype[Any], frozen: bool) -> str:
    """Return the expression of plain PyTorch and NumPy on a variable ``t`` that does the same."""
    calls = {
        Step.DETACH: ".detach()",
        Step.TO_HOST: ".cpu()",
        Step.RESOLVE_CONJ: ".resolve_conj()",
        Step.RESOLVE_NEG: ".resolve_neg()",
        Step.WIDEN: f".to(torch.{facts.widened})",
        Step.COPY: ".clone()",
        Step.VIEW_BITS: f".view(torch.{facts.bits}).numpy().view(ml_dtypes.{facts.name})",
        Step.CAST: f".numpy().astype({_dtype_code(target)})",
    }
    code = "t" + "".join(calls[step] for step in steps)
    if ".numpy()" not in code:
        code += ".numpy()"
    return f"np.broadcast_to({code}, t.shape)  # a read-only view" if frozen else code


def _dtype_code(dtype: np.dtype[Any]) -> str:
    """Return how a program names `dtype`; one of foreign byte order has only its code."""
    if not dtype.isnative:
        return repr(dtype.str)
    name = dtype.type.__name__
    return f"{'np' if hasattr(np, name) else 'ml_dtypes'}.{name}"

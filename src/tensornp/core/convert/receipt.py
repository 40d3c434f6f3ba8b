"""Write the texts of a plan: errors, reason, warnings and code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensornp.core.lowlevel.text import counted, with_article
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.dtypes import FLOAT4_VALUES, name_of
from tensornp.core.tensor.form import Obstacle, Step

if TYPE_CHECKING:
    from tensornp.core.tensor.facts import TensorInfo


_NO_DATA = {
    "meta": "a meta tensor has a shape and a dtype but no data; load or initialize its weights on a real device first",
    "fake": "a fake tensor has no data while something is traced or compiled; convert outside of it",
    "uninitialized": "an uninitialized parameter has no shape and no data yet; run one forward pass first",
    "freed": "the storage holds {held:,} bytes but the shape needs {reach:,}: it was freed or shrunk; "
    "gather it first, with FSDP by module.unshard()",
    "wrapped": "the values are wrapped by {wrapper} and cannot be read here; convert {instead}",
    "remote": "this rank holds only a part of a DTensor, placed {wrapper}: {shard}; convert t.to_local(), "
    'or call tnp.to_numpy(t, shard="full") on all ranks together',
    "pending": "this rank's part of a DTensor, placed {wrapper}, is {pending}, and no value; "
    'take tnp.to_numpy(t, shard="full") on all ranks together',
}


def no_data_text(info: TensorInfo) -> str:
    while info.inner is not None and info.inner.data_state == info.data_state:
        info = info.inner
    if info.data_state == "remote" and info.shard is not None and info.shard.pending:
        return _NO_DATA["pending"].format(wrapper=info._wrapper, pending=info.shard.pending)
    held, reach = (info.storage.nbytes, info.storage.reach) if info.storage else (0, 0)
    inner = ", ".join(f"t.{name}" for name in info._inner_names)
    # A tensor of a lazy device is functionalized inside.
    instead = "t.cpu()" if info.device.type in ("lazy", "xla") else "what it returns"
    if inner:
        instead = f"one of the tensors inside it: {inner}" if "," in inner else f"the tensor inside it: {inner}"
    share = f"{counted(info._nbytes_here, 'byte')} of {info.nbytes:,}"
    told = {"wrapper": info._wrapper, "instead": instead, "shard": f"{info.shard}, {share}" if info.shard else share}
    return _NO_DATA[info.data_state].format(held=held, reach=reach, **told)


def kind_obstacle(info: TensorInfo) -> Obstacle | None:
    words = {"layout": name_of(info.layout), "dtype": name_of(info.dtype), "type_name": info.type_name}
    obstacle = info.kind.obstacle
    return obstacle and Obstacle(obstacle.detail.format(**words), obstacle.clause.format(**words))


def described(info: TensorInfo, detail: str) -> str:
    """Return a tensor as the subject of a sentence: "a bfloat16 tensor on cuda:0"."""
    where = "" if info.device.type == "cpu" else f" on {info.device}"
    return " ".join(f"{with_article(name_of(info.dtype))} tensor{where} {detail}".split())


UNSHARDED = Obstacle("that FSDP has gathered", "FSDP has gathered it, and could not reshard what an array shares")
UNSHARDED_HAZARD = (
    "FSDP can no longer reshard this storage: its next step ends in 'Trying to resize storage that is not resizable'"
)
ASKED_FOR = "copy: asked for"


def reason_text(info: TensorInfo, shares: bool, frozen: bool, obstacle: Obstacle | None) -> str:
    if not info.numel:
        return "empty: there is nothing to share or to copy"
    if not shares:
        return f"copy: {obstacle.clause}" if obstacle else f"{ASKED_FOR}, so no later write is seen on the other side"
    if not frozen:
        return "shares memory, writeable: a write on either side is seen on the other"
    return "shares memory, read-only: a write to the tensor is seen in the array, and NumPy cannot write"


def warning_texts(
    info: TensorInfo, facts: dtypes.DtypeFacts, as_bits: bool, shares: bool, frozen: bool
) -> tuple[str, ...]:
    warnings = []
    if as_bits:
        warnings.append(
            f"NumPy sums and averages this array in {facts.name} itself; reduce a.astype(np.{facts.widened}) instead"
        )
    if info._is_unsharded and shares:
        warnings.append(UNSHARDED_HAZARD)
    if info._saved_for and shares:
        warnings.append(saved_text(info._saved_for, frozen))
    if shares and not frozen:
        if info.requires_grad and not info._saved_for:
            warnings.append("autograd does not see a NumPy write, so gradients may be silently wrong")
        if info._is_expanded:
            warnings.append("several indices address one element, so a NumPy write may change more than one")
        if info.is_inference:
            warnings.append("torch forbids writes to this inference tensor outside of inference mode; NumPy does not")
    return tuple(warnings)


def saved_text(saved_for: tuple[str, ...], frozen: bool) -> str:
    """Return the effect of a NumPy write on operations that have saved the tensor for backward."""
    names = ", ".join(saved_for[:3]) + f" and {len(saved_for) - 3:,} more" * (len(saved_for) > 3)
    if frozen:
        return f"saved for {names}: this array is read-only, so NumPy cannot change the gradients"
    return f"saved for {names}: a NumPy write here gives wrong gradients without an error"


READ_ONLY_VIEW = "  # a read-only view"
_UNPACKED = "torch.stack(({0}.view(torch.uint8) & 15, {0}.view(torch.uint8) >> 4), -1){1}.int()"


def code_text(
    info: TensorInfo, steps: tuple[Step, ...], facts: dtypes.DtypeFacts, target: np.dtype[Any], frozen: bool
) -> str:
    through = f".to(torch.{facts.dense_through})" if facts.dense_through else ""
    back = f".to(torch.{facts.name})" if through and (facts.numpy or Step.VIEW_BITS in steps) else ""
    # A dtype of foreign byte order has only its code.
    name = target.type.__name__
    cast = f"{'np' if hasattr(np, name) else 'ml_dtypes'}.{name}" if target.isnative else repr(target.str)
    calls = {
        Step.GATHER: ".full_tensor()",
        Step.DETACH: ".detach()",
        Step.TO_HOST: ".cpu()",
        Step.TO_DENSE: f"{through}.to_dense(){back}",
        Step.DEQUANTIZE: info.kind.indexed_by,
        Step.RESOLVE_CONJ: ".resolve_conj()",
        Step.RESOLVE_NEG: ".resolve_neg()",
        Step.WIDEN: f".to(torch.{facts.widened})",
        Step.COPY: ".clone()",
        Step.VIEW_BITS: f".view(torch.{facts.bits}).numpy().view(ml_dtypes.{facts.extension})",
        Step.CAST: f".numpy().astype({cast})",
    }
    code = info._access
    for step in steps:
        if step is Step.UNPACK:
            # A tensor without dimensions becomes an array of two values.
            flat = ".flatten(-2)" if info.shape else ""
            code = f"torch.tensor({list(FLOAT4_VALUES)})[{_UNPACKED.format(code, flat)}]"
        else:
            code += calls[step]
    if ".numpy()" not in code:
        code += ".numpy()"
    shape = f"{info._access}.shape" if info._array_shape == info.shape else str(info._array_shape)
    return f"np.broadcast_to({code}, {shape})" if frozen else code

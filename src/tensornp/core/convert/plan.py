"""Decide how a tensor becomes an array: a pure function of its metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensornp.core.convert import receipt
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import quoted
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.form import Obstacle, Step
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.tensor.strides import MAX_NDIM
from tensornp.errors import BadRequestError, CopyRequiredError, NoDataError, UnsupportedTensorError

if TYPE_CHECKING:
    from tensornp.core.tensor.facts import TensorInfo


MODES: Mapping[str, dict[str, Any]] = {
    "view": {"copy": None, "writeable": None},
    "share": {"copy": False, "writeable": True},
    "copy": {"copy": True, "writeable": None},
}
"""The modes: view (live, read-only), share (live, writeable), copy."""
MAX_NBYTES = 2**63 - 1
"""Bytes that NumPy can address."""


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """The receipt of a conversion, made before it runs.

    Attributes
    ----------
    steps : tuple of Step
        Steps of the conversion, in order.
    dtype : numpy.dtype
        Dtype of the array.
    shares_memory : bool
        Whether a write on one side shows on the other.
    writeable : bool
        Whether NumPy may write the array.
    exact : bool
        Whether every value survives unchanged.
    nbytes_copied : int
        Bytes of new memory; 0 if memory is shared.
    reason : str
        One sentence why memory is shared or copied.
    code : str
        The same conversion in plain PyTorch and NumPy, an expression of a variable ``t``.
    warnings : tuple of str
        Sentences about later surprises.
    """

    steps: tuple[Step, ...]
    dtype: np.dtype[Any]
    shares_memory: bool
    writeable: bool
    exact: bool
    nbytes_copied: int
    reason: str
    code: str
    warnings: tuple[str, ...] = ()

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        memory = "shares memory" if self.shares_memory else f"copies {self.nbytes_copied:,} bytes"
        lines = [
            f"{self.dtype} array, {memory}, {'writeable' if self.writeable else 'read-only'}, "
            f"{'exact' if self.exact else 'lossy'}",
            f"why:   {self.reason}",
            f"steps: {', '.join(self.steps) or 'none'}",
            f"code:  {self.code}",
        ]
        return "\n".join(lines + [f"note:  {warning}" for warning in self.warnings])


def decide(
    info: TensorInfo,
    *,
    copy: bool | None = None,
    writeable: bool | None = None,
    dtype: object = None,
    is_inner: bool = False,
) -> ConversionPlan:
    """Return the plan of a tensor with metadata `info`; arguments and errors as for `to_numpy`."""
    copy, writeable = flag("copy", copy), flag("writeable", writeable)
    if info.data_state != "available":
        raise NoDataError(receipt.no_data_text(info))
    if info.inner is not None:
        return _decide_through(info, info.inner, copy, writeable, dtype, is_inner=is_inner)
    facts = _refuse_unsupported(info)
    if dtype is None:
        as_bits = copy is False and facts.bits is not None and dtypes.has_extension(facts.extension or "")
        target, cast = _natural(facts, as_bits), None
    else:
        target = dtypes.asked_dtype(dtype)
        as_bits = facts.bits is not None and target.name == facts.extension
        cast = target if target != _natural(facts, as_bits) else None
    obstacle = _obstacle(info, facts, as_bits, cast)
    if writeable and obstacle is None and copy is not True and info._is_readonly_map:
        obstacle = Obstacle(
            "whose memory is mapped read-only", "the memory is mapped read-only, so a write would crash the process"
        )
    if obstacle is None and copy is None and info._is_unsharded and info.numel:
        # An array would keep FSDP from resharding.
        obstacle = receipt.UNSHARDED
    shape = info._array_shape
    numel = math.prod(shape)
    if copy is False and obstacle and numel:
        raise _copy_required(info, obstacle)
    shares = obstacle is None and copy is not True and numel > 0
    frozen = writeable is False or (shares and not writeable)
    comment = receipt.READ_ONLY_VIEW if shares and frozen and not is_inner else ""
    steps = _steps(info, facts, as_bits, cast, copies=copy is True or obstacle is not None)
    # NumPy ignores sizes of zero here.
    if math.prod(filter(None, shape)) * target.itemsize > MAX_NBYTES:
        raise UnsupportedTensorError(
            f"a tensor of shape {shape} spans more bytes than NumPy can address; slice it first"
        )
    return ConversionPlan(
        steps=steps,
        dtype=target,
        shares_memory=shares,
        writeable=not frozen,
        exact=cast is None or dtypes.is_exact_cast(facts.extension or facts.name, target.name),
        nbytes_copied=0 if shares else numel * target.itemsize,
        reason=receipt.reason_text(info, shares, frozen, obstacle),
        code=receipt.code_text(info, steps, facts, target, frozen) + comment,
        warnings=receipt.warning_texts(info, facts, as_bits, shares, frozen),
    )


def _decide_through(
    info: TensorInfo, inner: TensorInfo, copy: bool | None, writeable: bool | None, dtype: object, *, is_inner: bool
) -> ConversionPlan:
    obstacle = receipt.kind_obstacle(info)
    if copy is False and obstacle and info.numel:
        raise _copy_required(info, obstacle)
    plan = decide(inner, copy=True if obstacle else copy, writeable=writeable, dtype=dtype, is_inner=True)
    step = (info.kind.step,) if info.kind.step else ()
    steps = (*plan.steps, *step) if info.kind.is_masked else (*step, *plan.steps)
    reason = f"copy: {obstacle.clause}" if obstacle and info.numel and inner.kind is STRIDED else plan.reason
    nbytes = plan.nbytes_copied
    if info.kind.gives_several:
        nbytes = 0 if plan.shares_memory else info.numel * plan.dtype.itemsize
    elif info.kind.is_masked:
        nbytes += info.numel
    host = ".cpu()" if info.device.type != "cpu" else ""
    dense = ".to_dense()" if inner.kind.step is Step.TO_DENSE else ""
    code = info.kind.code.format(inner=plan.code, host=host, dense=dense)
    if plan.shares_memory and not plan.writeable and not is_inner:
        code += receipt.READ_ONLY_VIEW
    return replace(plan, steps=steps, nbytes_copied=nbytes, reason=reason, code=code)


def _copy_required(info: TensorInfo, obstacle: Obstacle) -> CopyRequiredError:
    return CopyRequiredError(
        f"{receipt.described(info, obstacle.detail)} cannot share memory with NumPy; pass copy=None to allow a copy"
    )


def flag(name: str, value: object) -> bool | None:
    """Return an argument as True, False or None; NumPy booleans count."""
    if value is not None and not isinstance(value, (bool, np.bool_)):
        raise BadRequestError(f"{name} must be True, False or None, got {quoted(value)}")
    return None if value is None else bool(value)


def _obstacle(info: TensorInfo, facts: dtypes.DtypeFacts, as_bits: bool, cast: np.dtype[Any] | None) -> Obstacle | None:
    if info.device.type != "cpu":
        return Obstacle("", f"on {info.device}")
    if info.kind is not STRIDED:
        return receipt.kind_obstacle(info)
    if info.is_conj:
        return Obstacle("with the conjugate bit set", "the conjugate is pending, so the bytes are not the values")
    if info.is_neg:
        return Obstacle("with the negative bit set", "the negation is pending, so the bytes are not the values")
    if facts.values_per_element > 1:
        detail = f"which packs {facts.values_per_element} values into each byte,"
        return Obstacle(detail, f"NumPy has no {facts.name}, values unpacked exactly to {facts.widened}")
    if facts.numpy is None and not as_bits:
        return Obstacle("", f"NumPy has no {facts.name}, values widened exactly to {facts.widened}")
    if cast is not None:
        return Obstacle(f"cast to {cast}", f"converted to {cast}")
    return None


def _refuse_unsupported(info: TensorInfo) -> dtypes.DtypeFacts:
    name = dtypes.name_of(info.dtype)
    if info.kind.values_dtype:
        if not info.detail:
            raise UnsupportedTensorError(f"this {name} tensor has codes but no scale; convert t.int_repr()")
        name = info.kind.values_dtype
    if name not in dtypes.KNOWN:
        raise UnsupportedTensorError(
            f"neither NumPy nor torch itself gives the elements of {name} a value; "
            "t.view(torch.uint8) shows the raw bytes"
        )
    if dtypes.KNOWN[name].values_per_element > 1 and info.kind is not STRIDED:
        raise UnsupportedTensorError(f"a {name} tensor of layout {info.layout} has no array; convert t.values()")
    if len(info.shape) > MAX_NDIM:
        raise UnsupportedTensorError(f"{len(info.shape)} dimensions are more than NumPy has; squeeze or reshape first")
    return dtypes.KNOWN[name]


def _natural(facts: dtypes.DtypeFacts, as_bits: bool) -> np.dtype[Any]:
    return dtypes.resolve((facts.extension if as_bits else facts.numpy or facts.widened) or facts.name)


def _steps(
    info: TensorInfo, facts: dtypes.DtypeFacts, as_bits: bool, cast: np.dtype[Any] | None, *, copies: bool
) -> tuple[Step, ...]:
    applies = {
        Step.TO_HOST: info.device.type != "cpu",
        Step.GATHER: info.kind.step is Step.GATHER,
        Step.TO_DENSE: info.kind.step is Step.TO_DENSE,
        Step.DEQUANTIZE: info.kind.step is Step.DEQUANTIZE,
        Step.UNPACK: facts.values_per_element > 1,
        Step.RESOLVE_CONJ: info.is_conj,
        Step.RESOLVE_NEG: info.is_neg,
        Step.WIDEN: facts.numpy is None and not as_bits and facts.values_per_element == 1,
        Step.CAST: cast is not None,
    }
    # Each of these makes new memory already.
    applies |= {
        Step.COPY: copies and (info.kind.step is Step.COPY or not any(applies.values())),
        Step.DETACH: info.requires_grad,
        Step.VIEW_BITS: as_bits,
    }
    return tuple(filter(applies.get, Step))

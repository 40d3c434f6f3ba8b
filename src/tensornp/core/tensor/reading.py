"""The functions that read each kind of tensor: the tensors that hold its values, and a few words on it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel import raw_memory, torch_private
from tensornp.core.lowlevel.text import counted, legible
from tensornp.core.tensor import kinds
from tensornp.core.tensor.kinds import Kind
from tensornp.core.tensor.stand_ins import stood_for
from tensornp.core.tensor.strides import num_reached
from tensornp.errors import NotReadError


class Reading(NamedTuple):
    """How one kind is read; nothing is waited for, computed or copied."""

    held: Callable[[Any], torch.Tensor] | None = None
    """The tensor in which the values are held, if that is another one."""
    parts: Callable[[Any], list[torch.Tensor]] | None = None
    """The tensors that reading the values reads besides: indices, values, scales, a mask."""
    detail: Callable[[Any], str] | None = None
    """A few words: how many elements are stored, how many parts there are."""


def held_tensor(t: Any, kind: Kind) -> torch.Tensor | None:
    """Return the tensor in which `t` holds its values, if it holds them in another one; nothing is waited for."""
    held = READINGS[kind.name].held
    return held(t) if held is not None else None


def parts_of(t: Any, kind: Kind) -> list[torch.Tensor]:
    """Return the tensors besides a `held_tensor` that reading `t` would read: indices, values, scales, a mask."""
    parts = READINGS[kind.name].parts
    return parts(t) if parts is not None else []


def detail_of(t: Any, kind: Kind) -> str:
    """Return a few words on `t`: how many elements a sparse tensor stores, how a quantized one is scaled."""
    detail = READINGS[kind.name].detail
    return detail(t) if detail is not None else ""


def stored_parts(sparse: Any) -> list[torch.Tensor]:
    """Return the indices and the values of a sparse tensor, as they are stored."""
    if sparse.layout == torch.sparse_coo:
        return [*torch_private.stored_elements(sparse)]
    return [*compressed_indices(sparse), sparse.values()]


def compressed_indices(sparse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pointers to rows (or columns), and the indices of the columns (or rows)."""
    if sparse.layout in (torch.sparse_csr, torch.sparse_bsr):
        return sparse.crow_indices(), sparse.col_indices()
    return sparse.ccol_indices(), sparse.row_indices()


def mask_of(t: Any) -> torch.Tensor:
    """Return the mask of a MaskedTensor, True where an element is shown; one without autograd or copy."""
    mask: torch.Tensor = t.get_mask()
    return mask


def _nested_parts(nested: Any) -> list[torch.Tensor]:
    if nested.layout == torch.jagged:
        return [part for part in (nested.offsets(), nested.lengths()) if part is not None]
    return torch_private.nested_sizes(nested)


_MAX_OFFSETS = 2**14
"""Parts of a jagged tensor whose places are looked at: they are read for each card."""


def misfit(nested: Any) -> str:
    """Return why the parts of a nested tensor cannot be told apart; empty where they can, or it is not looked at.

    What says how the values are divided cannot be read, or, in a jagged tensor, contradicts them. It is looked at as a
    shape is, on the CPU alone, and while no other thread runs that might take its memory away.
    """
    own = _nested_parts(nested)
    if any(type(one) is not torch.Tensor or one.device.type != "cpu" for one in own):
        return ""
    try:
        for one in own:
            _check_readable(one)
    except NotReadError as reason:
        return str(reason)
    if nested.layout != torch.jagged or any(one.numel() > _MAX_OFFSETS for one in own):
        return ""
    numbers: list[list[int]] = [one.tolist() for one in own]
    begins = numbers[0]
    sizes = numbers[1] if len(own) > 1 else [b - a for a, b in pairwise(begins)]
    ragged = next(dim for dim, size in enumerate(nested.shape) if type(size) is not int)
    count = nested.values().shape[ragged - 1]
    is_fit = all(begin >= 0 and size >= 0 and begin + size <= count for begin, size in zip(begins, sizes, strict=False))
    return "" if is_fit else f"its offsets lie outside of its {counted(count, 'value')}"


def scales_misfit(quantized: Any) -> str:
    """Return why the codes of a quantized tensor mean nothing; empty where each channel has a scale and a zero point.

    A view of another shape keeps the scales as they were, and torch does not dequantize it either.
    """
    for part, name in zip(_scales(quantized), ("scales", "zero points"), strict=False):
        axis, sizes = quantized.q_per_channel_axis(), tuple(quantized.shape)
        if tuple(part.shape) != sizes[axis : axis + 1]:
            many = (
                f"axis {axis} has {counted(sizes[axis], 'channel')}" if axis < len(sizes) else f"it has no axis {axis}"
            )
            return f"its {name} have shape {tuple(part.shape)}, and {many}: no code can be dequantized"
    return ""


def _check_readable(part: torch.Tensor) -> None:
    """Raise NotReadError unless the elements of a plain part can be read; what torch has allocated is no file's."""
    if part.numel() and not part.untyped_storage().resizable():
        low = torch_private.address_of(part)
        raw_memory.check_readable(low, low + num_reached(part.shape, part.stride()) * part.element_size())


def _scales(quantized: Any) -> list[torch.Tensor]:
    if "per_channel" not in _scheme(quantized):
        return []
    return [quantized.q_per_channel_scales(), quantized.q_per_channel_zero_points()]


def _scheme(quantized: Any) -> str:
    try:
        return str(quantized.qscheme()).removeprefix("torch.")
    except RuntimeError:
        # `torch.empty` makes quantized tensors without a scale.
        return ""


def _num_parts(nested: Any) -> str:
    count = nested.size(0)
    return f"{count:,} part{'s' * (count != 1)}"


READINGS = {
    kinds.STRIDED.name: Reading(),
    kinds.SPARSE.name: Reading(parts=stored_parts, detail=lambda t: f"{torch_private.num_stored(t):,} stored"),
    kinds.MKLDNN.name: Reading(),
    kinds.QUANTIZED.name: Reading(parts=_scales, detail=_scheme),
    kinds.DEQUANTIZED.name: Reading(),
    kinds.ZERO.name: Reading(),
    kinds.LAZY.name: Reading(),
    kinds.NESTED.name: Reading(held=lambda t: t.values(), parts=_nested_parts, detail=_num_parts),
    kinds.MASKED.name: Reading(held=lambda t: t.get_data(), parts=lambda t: [mask_of(t)]),
    kinds.LOCAL.name: Reading(held=lambda t: t.to_local(), detail=lambda t: legible(", ".join(map(str, t.placements)))),
    kinds.STAND_IN.name: Reading(held=stood_for),
    kinds.PENDING.name: Reading(held=lambda t: t.elem, detail=lambda t: "arrived" if t.completed else kinds.WRITING),
}
"""By the name of the kind."""

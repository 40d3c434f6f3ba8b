"""Read the inner tensors and details of each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.text import counted, legible
from tensornp.core.tensor import kinds
from tensornp.core.tensor.kinds import Kind
from tensornp.core.tensor.stand_ins import stood_for


class Reading(NamedTuple):
    """Reads the parts of one kind; does not wait, compute or copy."""

    held: Callable[[Any], torch.Tensor] | None = None
    """The inner tensor with the values."""
    parts: Callable[[Any], list[torch.Tensor]] | None = None
    """The other tensors: indices, values, scales, a mask."""
    detail: Callable[[Any], str] | None = None
    """A few words: the number of stored elements or of parts."""


def held_tensor(t: Any, kind: Kind) -> torch.Tensor | None:
    """Return the inner tensor that holds the values of `t`, or None; does not wait."""
    held = READINGS[kind.name].held
    return held(t) if held is not None else None


def parts_of(t: Any, kind: Kind) -> list[torch.Tensor]:
    """Return the other tensors of `t`: indices, values, scales, a mask."""
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


def scales_misfit(quantized: Any) -> str:
    """Return why the scales of a quantized tensor do not fit its codes, or "".

    A view of another shape keeps the scales; torch does not dequantize it either.
    """
    for part, name in zip(_scales(quantized), ("scales", "zero points"), strict=False):
        axis, sizes = quantized.q_per_channel_axis(), tuple(quantized.shape)
        if tuple(part.shape) != sizes[axis : axis + 1]:
            many = (
                f"axis {axis} has {counted(sizes[axis], 'channel')}" if axis < len(sizes) else f"it has no axis {axis}"
            )
            return f"its {name} have shape {tuple(part.shape)}, and {many}, so no code can be dequantized"
    return ""


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

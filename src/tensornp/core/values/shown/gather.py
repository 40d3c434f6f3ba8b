"""Take the printed elements of a tensor, for each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.memory.footprint import check_parts
from tensornp.core.tensor import kinds
from tensornp.core.tensor.dense import decode_float4, dense, dequantized
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import over_storage, plain
from tensornp.core.tensor.indexing import MAX_NUMEL, Places, indexed
from tensornp.errors import NotReadError

CODES = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}
"""The dtype of the codes of a quantized tensor."""


class TooManyError(NotReadError):
    """All elements would be laid out to print a few, and they are too many."""


def gather(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    """Return the elements at `places`, dense and in new memory, lazy bits resolved.

    Call it `outside_modes`. `places` has a list of indices for each dimension of ``info.array_shape``. The dtype is the
    tensor's own, or one that holds its values exactly if torch cannot compute in its own.

    Raises
    ------
    NotReadError
        If the memory was freed, the values are not computed yet, or all of more than `MAX_NUMEL` would be laid out.
    """
    check_parts(tensor)
    return _GATHERERS[info.kind.name](tensor, info, places)


def _strided(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    raw = plain(tensor)
    if info._array_shape != info.shape:
        return _packed(raw, places)
    if not (raw.is_conj() or raw.is_neg()):
        return indexed(raw, places)
    # torch would resolve all elements before it indexes, so the lazy bits come off first.
    few = indexed(over_storage(raw, raw.dtype), places)
    few = quietly(few.conj().resolve_conj) if raw.is_conj() else few
    return quietly(few.neg) if raw.is_neg() else few


def _packed(raw: torch.Tensor, places: Places) -> torch.Tensor:
    """Read the byte of each 4-bit value, then its half."""
    codes = raw.view(torch.uint8)
    codes = indexed(codes if codes.dim() else codes.view(1), [*places[:-1], [place // 2 for place in places[-1]]])
    shifts = torch.tensor([4 * (place % 2) for place in places[-1]], dtype=torch.uint8, device=codes.device)
    return decode_float4(codes >> shifts & 15)


def _zeros(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    return torch.zeros([len(place) for place in places], dtype=info.dtype, device=info.device)


def _quantized(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    """Dequantize the codes at `places` alone."""
    raw = plain(tensor)
    if raw.dtype not in CODES:
        return _laid_out(tensor, info, places)
    codes = indexed(over_storage(raw, CODES[raw.dtype]), places)
    few = torch_private.quantized_like(codes, raw, lambda part, dim: indexed(plain(part), [places[dim]]))
    return quietly(few.dequantize)


def _laid_out(tensor: Any, info: TensorInfo, places: Places) -> torch.Tensor:
    """Lay all elements out: the kind cannot be indexed."""
    if info.numel > MAX_NUMEL:
        raise TooManyError(
            f"the values are not shown: t{info.kind.indexed_by} would make all {info.numel:,} elements; use to_numpy"
        )
    if info.kind is kinds.DEQUANTIZED:
        return indexed(dequantized(tensor), places)
    raw = plain(tensor)
    return indexed(quietly(raw.dequantize) if raw.is_quantized else dense(raw), places)


def _refuse_lazy(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    raise NotReadError("the values are not computed yet, and looking does not start it; to_numpy does when asked")


_GATHERERS: dict[str, Callable[[torch.Tensor, TensorInfo, Places], torch.Tensor]] = {
    kinds.STRIDED.name: _strided,
    kinds.ZERO.name: _zeros,
    kinds.QUANTIZED.name: _quantized,
    kinds.MKLDNN.name: _laid_out,
    kinds.DEQUANTIZED.name: _laid_out,
    kinds.SPARSE.name: _laid_out,
    kinds.LAZY.name: _refuse_lazy,
}

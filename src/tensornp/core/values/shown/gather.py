"""The few elements that a card prints, gathered where the tensor lies, into new memory of about their size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.memory.own_copy import copied, elements, is_steady
from tensornp.core.memory.still import CODES, still
from tensornp.core.tensor import kinds
from tensornp.core.tensor.dense import decode_float4, dense, dequantized
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import over_storage, plain
from tensornp.core.tensor.indexing import MAX_NUMEL, Places, indexed
from tensornp.core.values.shown.sparse_lookup import found_in_compressed, found_in_coo
from tensornp.errors import NotReadError

SMALL_NUMEL = 100_000
"""Elements up to which a tensor that is not strided is converted as a whole."""


def gather(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    """Return the elements at `places`, dense and in new memory on the tensor's own device, lazy bits resolved.

    Call it `outside_modes`. It holds where another thread takes the memory away, or its file has become shorter.
    `places` has a list of indices for each dimension of ``info.array_shape``. The dtype is the tensor's own, or one
    that holds its values exactly, where torch cannot compute in its own.

    Raises
    ------
    NotReadError
        If the elements cannot be had without reading far more than is printed.
    """
    return _GATHERERS[info.kind.name](tensor, info, places)


def _strided(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    """Index the raw elements: the lazy bits come off first, since torch would otherwise resolve all of the tensor."""
    raw = plain(tensor)
    if tuple(raw.shape) != info.shape or raw.dtype != info.dtype:
        raise NotReadError("another thread has made another tensor of it meanwhile")
    if info._array_shape != info.shape:
        return _packed(raw, places)
    return _resolved(raw, info, lambda raw: elements(raw, places))


def own_values(tensor: torch.Tensor, info: TensorInfo) -> torch.Tensor:
    """Return a copy of all elements of a strided tensor in main memory, as `gather` does of some."""
    return _resolved(plain(tensor), info, lambda raw: quietly(raw.clone) if is_steady(raw) else copied(raw))


def _resolved(raw: torch.Tensor, info: TensorInfo, take: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return what `take` makes of `raw` without its lazy bits, with them applied."""
    if not (info.is_conj or info.is_neg):
        return take(raw)
    few = take(over_storage(raw, raw.dtype))
    few = quietly(few.conj().resolve_conj) if info.is_conj else few
    return quietly(few.neg) if info.is_neg else few


def _packed(raw: torch.Tensor, places: Places) -> torch.Tensor:
    """Read the byte of each 4-bit value, then its half."""
    codes = raw.view(torch.uint8)
    codes = elements(codes if codes.dim() else codes.view(1), [*places[:-1], [place // 2 for place in places[-1]]])
    shifts = torch.tensor([4 * (place % 2) for place in places[-1]], dtype=torch.uint8, device=codes.device)
    return decode_float4(codes >> shifts & 15)


def _zeros(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    return torch.zeros([len(place) for place in places], dtype=info.dtype, device=info.device)


def _opaque(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    _refuse_large(info, "to_dense")
    return indexed(plain(tensor).to_dense(), places)


def _quantized(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    """Take the codes at `places` out of the storage, and dequantize these alone."""
    raw = plain(tensor)
    if raw.dtype in CODES:
        codes = elements(over_storage(raw, CODES[raw.dtype]), places)
        few = torch_private.quantized_like(codes, raw, lambda part, dim: elements(plain(part), [places[dim]]))
        return quietly(few.dequantize)
    _refuse_large(info, "dequantize")
    return indexed(quietly(still(raw, info).dequantize), places)


def _dequantized(tensor: Any, info: TensorInfo, places: Places) -> torch.Tensor:
    """Dequantize the rows that are wanted, by the class's own slicing; the whole where it is small."""
    tensor = still(tensor, info)
    if info.numel <= SMALL_NUMEL or not places:
        return indexed(dequantized(tensor), places)
    rows = sorted(set(places[0]))
    if math.prod(info.shape[1:]) * len(rows) > MAX_NUMEL:
        _refuse_large(info, "dequantize")
    try:
        runs = [dequantized(tensor.narrow(0, start, length)) for start, length in _runs(rows)]
    except Exception as error:
        raise NotReadError(f"{info.type_name} cannot be sliced, and all of it would be dequantized") from error
    return indexed(torch.cat(runs), [[rows.index(row) for row in places[0]], *places[1:]])


def _runs(indices: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and the length of each run of consecutive integers."""
    for _, run in itertools.groupby(enumerate(indices), lambda pair: pair[1] - pair[0]):
        members = [index for _, index in run]
        yield members[0], len(members)


def _refuse_large(info: TensorInfo, method: str) -> None:
    if info.numel > MAX_NUMEL:
        raise NotReadError(
            f"the values are not shown: t.{method}() would make all {info.numel:,} elements, and to_numpy does"
        )


def _refuse_lazy(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    raise NotReadError("the values are not computed yet, and looking does not start it; to_numpy does when asked")


def _sparse(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    """Look the elements up among the stored ones; lay out the whole only where that is small."""
    raw = plain(still(tensor, info))
    if info.numel <= SMALL_NUMEL:
        return indexed(dense(raw), places)
    wanted = [sorted(set(place)) for place in places]
    small = found_in_coo(raw, wanted) if raw.layout == torch.sparse_coo else found_in_compressed(raw, wanted)
    return indexed(small, [[chosen.index(i) for i in place] for chosen, place in zip(wanted, places, strict=True)])


_GATHERERS: dict[str, Callable[[torch.Tensor, TensorInfo, Places], torch.Tensor]] = {
    kinds.STRIDED.name: _strided,
    kinds.ZERO.name: _zeros,
    kinds.MKLDNN.name: _opaque,
    kinds.QUANTIZED.name: _quantized,
    kinds.DEQUANTIZED.name: _dequantized,
    kinds.SPARSE.name: _sparse,
    kinds.LAZY.name: _refuse_lazy,
}

"""The few elements that a card prints, gathered where the tensor lies, into new memory of about their size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tensornp.core import dtypes, float4, torch_private
from tensornp.core.holding import Form, compressed_indices
from tensornp.core.info import TensorInfo, inspect
from tensornp.errors import UnsupportedTensorError

SMALL_NUMEL = 100_000
"""Elements up to which a tensor that is not strided is converted as a whole."""
MAX_NUMEL = 4_000_000
"""Elements that are read at most, where those that are printed cannot be read alone."""
CHUNK = 1 << 18
"""Stored elements of a sparse tensor that are searched at once."""

Places = list[list[int]]
"""The indices that are wanted of each dimension."""


class NotReadError(Exception):
    """No element is read: the message says why, and what to do instead."""


def gather(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    """Return the elements at `places`, dense and in new memory on the tensor's own device, lazy bits resolved.

    Call it `torch_private.apart`.
    `places` has a list of indices for each dimension of ``info.array_shape``. The dtype is the tensor's own, or one
    that holds its values exactly, where torch cannot compute in its own.

    Raises
    ------
    NotReadError
        If the elements cannot be had without reading far more than is printed.
    """
    return _GATHERERS[info.form](tensor, info, places)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return an alias of `tensor` outside of autograd, stripped of its class; call it `undisturbed`."""
    values = torch.Tensor.detach(tensor)
    return values if type(values) is torch.Tensor else torch.Tensor.as_subclass(values, torch.Tensor)


def dense(sparse: torch.Tensor) -> torch.Tensor:
    """Return the dense form, in a wider dtype where torch has no dense form in the tensor's own."""
    if sparse.layout == torch.strided:
        return sparse
    _check_indices(sparse)
    facts = dtypes.KNOWN.get(dtypes.name_of(sparse.dtype))
    through = facts.dense_through if facts else None
    if through is None or facts is None:
        return sparse.to_dense()
    laid_out = sparse.to(getattr(torch, through)).to_dense()
    return laid_out.to(sparse.dtype) if facts.numpy else laid_out


def dequantized(tensor: Any) -> torch.Tensor:
    """Return what the class itself makes of its codes."""
    try:
        values = tensor.dequantize()
        info = inspect(values)
        if (info.data_state, info.form, info.shape) != ("available", "strided", tuple(tensor.shape)):
            raise TypeError(f"it gives a {info.data_state} {info.form} tensor of shape {info.shape}")
        if not tensor.dtype.is_floating_point and values.dtype != tensor.dtype:
            raise TypeError(f"it gives {values.dtype}, where {tensor.dtype} is stated")
        # Some classes dequantize to another dtype than the one that they state, which is the one of the receipt.
        return plain(values).resolve_conj().resolve_neg().to(tensor.dtype)
    except Exception as error:
        raise UnsupportedTensorError(
            f"{type(tensor).__name__}.dequantize() failed ({type(error).__name__}: {error}); "
            "convert the tensors inside it"
        ) from error


def _check_indices(sparse: Any) -> None:
    """Refuse a sparse tensor whose indices lie outside its shape: torch, which seldom checks, writes to wild places."""
    try:
        if sparse.layout == torch.sparse_coo:
            indices, _ = torch_private.stored_elements(sparse)
            sizes = torch.tensor(sparse.shape[: indices.shape[0]], device=indices.device)[:, None]
            if bool(((indices < 0) | (indices >= sizes)).any()):
                raise RuntimeError("an index is outside of the shape")
        elif sparse.layout != torch_private.MKLDNN:
            torch_private.check_compressed(sparse, *compressed_indices(sparse))
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise UnsupportedTensorError(
            f"this {dtypes.name_of(sparse.layout)} tensor is broken ({reason}); make it anew with check_invariants=True"
        ) from error


def _strided(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    """Index the raw elements: the lazy bits come off first, since torch would otherwise resolve all of the tensor."""
    raw = plain(tensor)
    if info.array_shape != info.shape:
        return _packed(raw, places)
    raw = torch_private.flip_neg_bit(raw) if info.is_neg else raw
    raw = raw.conj() if info.is_conj else raw
    few = _indexed(raw, places)
    few = few.conj().resolve_conj() if info.is_conj else few
    return torch_private.flip_neg_bit(few).resolve_neg() if info.is_neg else few


def _packed(raw: torch.Tensor, places: Places) -> torch.Tensor:
    """Read the byte of each 4-bit value, then its half."""
    codes = raw.view(torch.uint8)
    codes = _indexed(codes if codes.dim() else codes.view(1), [*places[:-1], [place // 2 for place in places[-1]]])
    shifts = torch.tensor([4 * (place % 2) for place in places[-1]], dtype=torch.uint8, device=codes.device)
    return float4.decode(codes >> shifts & 15)


def _indexed(values: torch.Tensor, places: Places) -> torch.Tensor:
    """Return the elements at `places`, always in new memory."""
    if all(len(place) == size for place, size in zip(places, values.shape, strict=True)):
        return values.clone()
    return values[_index(places, values.device)]


def _index(places: Places, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Return one index tensor a dimension, which broadcast against each other."""
    return tuple(
        torch.tensor(place, dtype=torch.int64, device=device).view([-1] + [1] * (len(places) - dim - 1))
        for dim, place in enumerate(places)
    )


def _zeros(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    return torch.zeros([len(place) for place in places], dtype=info.dtype, device=info.device)


def _opaque(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    _refuse_large(info, "to_dense")
    return _indexed(plain(tensor).to_dense(), places)


def _quantized(tensor: torch.Tensor, info: TensorInfo, places: Places) -> torch.Tensor:
    """Take the codes at `places` out of the storage, and dequantize these alone."""
    raw = plain(tensor)
    codes_dtype = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}.get(raw.dtype)
    if codes_dtype is None:
        _refuse_large(info, "dequantize")
        return _indexed(raw.dequantize(), places)
    codes = torch.empty(0, dtype=codes_dtype, device=raw.device)
    codes = codes.set_(raw.untyped_storage(), raw.storage_offset(), raw.shape, raw.stride())
    index = list(_index(places, raw.device))
    return torch_private.quantized_like(_indexed(codes, places), raw, index).dequantize()


def _dequantized(tensor: Any, info: TensorInfo, places: Places) -> torch.Tensor:
    """Dequantize the rows that are wanted, by the class's own slicing; the whole where it is small."""
    if info.numel <= SMALL_NUMEL or not places:
        return _indexed(dequantized(tensor), places)
    rows = sorted(set(places[0]))
    if math.prod(info.shape[1:]) * len(rows) > MAX_NUMEL:
        _refuse_large(info, "dequantize")
    try:
        runs = [dequantized(tensor.narrow(0, start, length)) for start, length in _runs(rows)]
    except Exception as error:
        raise NotReadError(f"{info.type_name} cannot be sliced, and all of it would be dequantized") from error
    return _indexed(torch.cat(runs), [[rows.index(row) for row in places[0]], *places[1:]])


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
    raw = plain(tensor)
    if info.numel <= SMALL_NUMEL:
        return _indexed(dense(raw), places)
    wanted = [sorted(set(place)) for place in places]
    small = _found_in_coo(raw, wanted) if raw.layout == torch.sparse_coo else _found_in_compressed(raw, wanted)
    return _indexed(small, [[chosen.index(i) for i in place] for chosen, place in zip(wanted, places, strict=True)])


def _found_in_coo(raw: Any, wanted: Places) -> torch.Tensor:
    """Return the dense block of the elements at `wanted`, sorted indices of each dimension."""
    indices, values = torch_private.stored_elements(raw)
    spans = [(0, values.shape[0])]
    if raw.is_coalesced() and indices.shape[0] and indices[0].is_contiguous():
        # The first row of coalesced indices is sorted.
        first = torch.tensor(wanted[0], device=indices.device)
        starts = torch.searchsorted(indices[0], first).tolist()
        ends = torch.searchsorted(indices[0], first, right=True).tolist()
        spans = list(zip(starts, ends, strict=True))
    if sum(end - start for start, end in spans) > MAX_NUMEL:
        raise NotReadError(
            f"the values are not shown: finding them would search {torch_private.num_stored(raw):,} stored elements; "
            "t.coalesce() sorts them, and to_numpy converts all when asked"
        )
    sparse = [torch.tensor(chosen, device=indices.device) for chosen in wanted[: indices.shape[0]]]
    found = [
        _matching(indices[:, at : min(at + CHUNK, end)], values[at : min(at + CHUNK, end)], sparse)
        for start, end in spans
        for at in range(start, end, CHUNK)
    ]
    places = torch.cat([i for i, _ in found], 1) if found else indices[:, :0]
    stored = torch.cat([v for _, v in found]) if found else values[:0]
    shape = [len(chosen) for chosen in sparse] + list(values.shape[1:])
    block = dense(torch.sparse_coo_tensor(places, stored, shape, check_invariants=False))
    return _indexed(block, [list(range(n)) for n in shape[: len(sparse)]] + wanted[len(sparse) :])


def _matching(indices: torch.Tensor, values: torch.Tensor, wanted: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return those of the stored elements that are wanted, their indices counted among the wanted ones."""
    if not wanted:
        # All stored elements lie at the one place that no sparse dimension tells apart.
        return indices, values
    positions = torch.stack([torch.searchsorted(w, i.contiguous()) for w, i in zip(wanted, indices, strict=True)])
    clamped = [p.clamp(max=len(w) - 1) for p, w in zip(positions, wanted, strict=True)]
    matches = torch.stack([w[p] == i for w, p, i in zip(wanted, clamped, indices, strict=True)]).all(0)
    return positions[:, matches], values[matches]


def _found_in_compressed(raw: Any, wanted: Places) -> torch.Tensor:
    """Return the same for CSR, CSC, BSR and BSC: the stored rows (or columns) that are wanted are searched alone."""
    by_row = raw.layout in (torch.sparse_csr, torch.sparse_bsr)
    pointers, others = compressed_indices(raw)
    values, num_batch = raw.values(), pointers.dim() - 1
    in_blocks = raw.layout in (torch.sparse_bsr, torch.sparse_bsc)
    height, width = values.shape[num_batch + 1 : num_batch + 3] if in_blocks else (1, 1)
    dense_dims = wanted[num_batch + 2 :]
    facts = dtypes.KNOWN[dtypes.name_of(raw.dtype)]
    dtype = getattr(torch, facts.dense_through or facts.name)
    out = torch.zeros([len(chosen) for chosen in wanted], dtype=dtype, device=raw.device)
    for cell in itertools.product(*(enumerate(chosen) for chosen in wanted[: num_batch + 2])):
        at, where = zip(*cell, strict=True)
        batch, (row, column) = where[:num_batch], where[num_batch:]
        major, minor = row // height, column // width
        if not by_row:
            major, minor = minor, major
        start, end = pointers[batch][major : major + 2].tolist()
        # Sorted and distinct within each row, as torch demands of these layouts.
        inner = others[batch][start:end]
        k = int(torch.searchsorted(inner, minor))
        if k < len(inner) and int(inner[k]) == minor:
            stored = values[batch][start + k]
            stored = stored[row % height, column % width] if in_blocks else stored
            out[at] += _indexed(stored, dense_dims).to(dtype)
    return out.to(raw.dtype) if facts.dense_through and facts.numpy else out


_GATHERERS: dict[Form, Callable[[torch.Tensor, TensorInfo, Places], torch.Tensor]] = {
    "strided": _strided,
    "zero": _zeros,
    "mkldnn": _opaque,
    "quantized": _quantized,
    "dequantized": _dequantized,
    "sparse": _sparse,
    "lazy": _refuse_lazy,
}

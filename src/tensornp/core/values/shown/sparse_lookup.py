"""Single elements of a sparse tensor, looked up among the stored ones."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.tensor import dtypes
from tensornp.core.tensor.dense import dense
from tensornp.core.tensor.indexing import MAX_NUMEL, Places, indexed
from tensornp.core.tensor.reading import compressed_indices
from tensornp.errors import NotReadError

CHUNK = 1 << 18
"""Stored elements of a sparse tensor that are searched at once."""


def found_in_coo(raw: Any, wanted: Places) -> torch.Tensor:
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
    return indexed(block, [list(range(n)) for n in shape[: len(sparse)]] + wanted[len(sparse) :])


def _matching(indices: torch.Tensor, values: torch.Tensor, wanted: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return those of the stored elements that are wanted, their indices counted among the wanted ones."""
    if not wanted:
        # All stored elements lie at the one place that no sparse dimension tells apart.
        return indices, values
    positions = torch.stack([torch.searchsorted(w, i.contiguous()) for w, i in zip(wanted, indices, strict=True)])
    clamped = [p.clamp(max=len(w) - 1) for p, w in zip(positions, wanted, strict=True)]
    matches = torch.stack([w[p] == i for w, p, i in zip(wanted, clamped, indices, strict=True)]).all(0)
    return positions[:, matches], values[matches]


def found_in_compressed(raw: Any, wanted: Places) -> torch.Tensor:
    """Return the dense block of the elements at `wanted` of a CSR, CSC, BSR or BSC tensor.

    Only the stored rows (or columns) that are wanted are searched.
    """
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
            out[at] += indexed(stored, dense_dims).to(dtype)
    return out.to(raw.dtype) if facts.dense_through and facts.numpy else out

"""Compute the elements of a DTensor on a rank from mesh and placements; no other rank is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, quoted
from tensornp.errors import BadRequestError

Index = tuple[int, ...]
_NAMES = {1: ("element",), 2: ("row", "column")}


def check_shard(shard: object) -> None:
    if shard is not None and not (isinstance(shard, str) and shard in ("local", "full")):
        raise BadRequestError(f'shard must be "local", "full" or None, got {quoted(shard)}')


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """The part of a DTensor on one rank.

    `offsets` is the first index of the part, or None if it is not a box. `num_alike` of the `num_ranks` hold the same
    elements. `pending` says in words that the parts are still to be reduced.
    """

    whole: Index
    shape: Index
    offsets: Index | None
    num_ranks: int
    num_alike: int = 1
    pending: str = ""
    coordinate: Index | None = None
    rank: int | None = None
    placements: tuple[str, ...] = ()

    _mime_, _repr_html_ = mime_of, html_of

    def __str__(self) -> str:
        return "; ".join(self._said())

    def _said(self) -> Iterator[str]:
        numel, here = math.prod(self.whole), math.prod(self.shape)
        name = f"rank {self.rank}" if self.rank is not None else f"{self.coordinate or 'none'} of the mesh"
        if self.coordinate is None:
            yield f"{name} is none of the {self.num_ranks:,} that hold it"
            return
        if self.pending:
            yield self.pending
        is_numbered = self.rank is not None and self.rank < self.num_ranks
        name += f" of {self.num_ranks:,}" if is_numbered else f", one of {self.num_ranks:,},"
        if not here and numel:
            yield f"{name} holds none: empty on this rank"
        elif here < numel:
            share = f"1/{numel // here:,}" if numel % here == 0 else f"{here:,} of {counted(numel, 'element')}"
            ranges = ", ".join(self._ranges())
            yield f"{name} holds {ranges} ({share})" if ranges else f"{name} holds {here:,} of {numel:,} elements"
        if self.num_alike > 1:
            yield f"the same on {self.num_alike:,} ranks"

    def _ranges(self) -> Iterator[str]:
        for dim, (first, size, whole) in enumerate(zip(self.offsets or (), self.shape, self.whole, strict=False)):
            if size < whole:
                names = _NAMES.get(len(self.whole))
                noun = f"axis {dim}:" if names is None else names[dim] + "s" * (size != 1)
                yield f"{noun} {first}–{first + size - 1} of {whole:,}" if size > 1 else f"{noun} {first} of {whole:,}"

    @property
    def scope(self) -> str:
        if self.rank is not None:
            return f"local shard of rank {self.rank}"
        return f"local shard at {self.coordinate} of the mesh" if self.coordinate else "local shard outside of the mesh"

    def holds_the_same(self, other: ShardFacts) -> bool:
        if self.offsets is None:
            return other.offsets is None and (self.whole, self.placements) == (other.whole, other.placements)
        return (self.offsets, self.shape) == (other.offsets, other.shape)

    def index_in_whole(self, index: Index) -> Index:
        if self.offsets is None:
            return index
        return tuple(i + first for i, first in zip(index, self.offsets, strict=False))

    def index_here(self, index: Index) -> Index | None:
        """Return the index in the part of an index in the tensor; None if on other ranks."""
        if self.offsets is None:
            return index
        here = tuple(i - first for i, first in zip(index, self.offsets, strict=False))
        return here if all(0 <= i < size for i, size in zip(here, self.shape, strict=False)) else None


def shard_facts(dtensor: Any, shape: Index, local_shape: Index) -> ShardFacts | None:
    mesh, placements = dtensor.device_mesh, dtensor.placements
    sizes, coordinate = tuple(mesh.shape), mesh.get_coordinate()
    if any(type(n) is not int for n in sizes) or -1 in (*shape, *local_shape):
        return None
    coordinate, offsets = (None if coordinate is None else tuple(coordinate)), None
    dims = [getattr(one, "dim", None) for one in placements]
    factors = [int(getattr(one, "split_factor", 1)) for one in placements]
    entries = getattr(dtensor._spec, "shard_order", None) or ()
    order, is_box = [at for entry in entries for at in entry.mesh_dims] or list(range(len(sizes))), True
    if max(factors, default=1) > 1:
        # FSDP over tensor parallelism: later dimensions of the mesh have cut the tensor before.
        at = factors.index(max(factors))
        before = [n for n, dim in zip(sizes[at + 1 :], dims[at + 1 :], strict=True) if dim == dims[at]]
        is_box, order = factors.count(1) == len(factors) - 1 and factors[at] == math.prod(before), [*order, at]
        order.remove(at)
    if coordinate is not None and is_box:
        found, held = box_held(shape, sizes, coordinate, dims, order)
        # A program may make a DTensor of a local part with other sizes.
        offsets = found if held == local_shape else None
    reductions = [str(one) for one, n in zip(placements, sizes, strict=True) if one.is_partial() and n > 1]
    what = "a sum that" if all("sum" in one for one in reductions) else "what"
    alike = [n for one, n in zip(placements, sizes, strict=True) if one.is_replicate()]
    try:
        rank = int(mesh.get_rank())
    except (RuntimeError, ValueError):
        # The process group is destroyed.
        rank = None
    return ShardFacts(
        shape, local_shape, offsets, math.prod(sizes), math.prod(alike),
        f"a part of {what} is not reduced yet" if reductions else "", coordinate, rank, tuple(map(str, placements)),
    )  # fmt: skip


def box_held(
    shape: Index, mesh_shape: Sequence[int], coordinate: Index, dims: Sequence[int | None],
    order: Sequence[int] | None = None,
) -> tuple[Index, Index]:  # fmt: skip
    """Return the first index and the shape of the part on one rank, cut as `torch.chunk` cuts."""
    offsets, sizes = [0] * len(shape), list(shape)
    for at in range(len(mesh_shape)) if order is None else order:
        dim = dims[at]
        if dim is not None:
            size = -(-sizes[dim] // mesh_shape[at])
            skipped = min(size * coordinate[at], sizes[dim])
            offsets[dim], sizes[dim] = offsets[dim] + skipped, min(size, sizes[dim] - skipped)
    return tuple(offsets), tuple(sizes)

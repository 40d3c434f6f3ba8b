"""Compute the elements of a DTensor on a rank from mesh and placements; no other rank is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, legible

Runs = tuple[tuple[int, int], ...]
"""Indices of one dimension, in their order: from each first one up to each end, which is none of them."""
_MAX_RUNS = 1000
_NAMES = {1: ("element",), 2: ("row", "column")}
_MAX_SAID = 4


class Placement(NamedTuple):
    """How a tensor lies along one dimension of a mesh.

    `dim` is the dimension of the tensor that is cut, None if each rank has all of it. The dimension is cut into
    `split_factor` pieces, and each piece again for the ranks. `is_pending` parts are still to be added up.
    """

    text: str
    dim: int | None = None
    split_factor: int = 1
    is_pending: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """The part of a DTensor on one rank.

    `coordinate` is the place of this rank in the mesh, or None outside of it. `whole` and `shape` are the shapes of the
    tensor and of its part. `rank` is the number of this rank, if it is known. `held` are the indices of each dimension
    on this rank; None if the placements do not tell.
    """

    mesh_shape: tuple[int, ...]
    coordinate: tuple[int, ...] | None
    placements: tuple[Placement, ...]
    whole: tuple[int, ...]
    shape: tuple[int, ...]
    rank: int | None = None
    held: tuple[Runs, ...] | None = None

    @property
    def offsets(self) -> tuple[int, ...] | None:
        """The first index of the part; None if it is not a box, or not known."""
        if self.held is None or any(len(runs) > 1 for runs in self.held):
            return None
        return tuple(runs[0][0] if runs else size for runs, size in zip(self.held, self.whole, strict=True))

    @property
    def pending(self) -> bool:
        """Whether the parts are still to be added up, or reduced otherwise: none of them is a value."""
        return any(one.is_pending and n > 1 for one, n in zip(self.placements, self.mesh_shape, strict=True))

    @property
    def _who(self) -> str:
        """The name of this rank: "rank 3", or "(1,) of the mesh" without a process group."""
        if self.rank is not None:
            return f"rank {self.rank}"
        return f"{self.coordinate} of the mesh" if self.coordinate is not None else "none of the mesh"

    _mime_, _repr_html_ = mime_of, html_of

    def __str__(self) -> str:
        return "; ".join(self._said())

    def _said(self) -> Iterator[str]:
        num, numel, here = math.prod(self.mesh_shape), math.prod(self.whole), math.prod(self.shape)
        if self.coordinate is None:
            yield f"{self._who} is none of the {num:,} that hold it"
            return
        if self.pending:
            yield self.pending_text
        who = (
            f"{self._who} of {num:,}" if self.rank is not None and self.rank < num else f"{self._who}, one of {num:,},"
        )
        if not here and numel:
            yield f"{who} holds none: empty on this rank"
        elif self.held is not None and here < numel:
            share = f"1/{numel // here:,}" if numel % here == 0 else f"{here:,} of {counted(numel, 'element')}"
            yield f"{who} holds {', '.join(self._ranges())} ({share})"
        elif here < numel:
            yield f"{who} holds {here:,} of {counted(numel, 'element')}"
        if (same := self.num_alike) > 1:
            yield f"the same on {same:,} ranks"

    @property
    def scope(self) -> str:
        """The scope of the part: "local shard of rank 3"."""
        if self.rank is not None:
            return f"local shard of rank {self.rank}"
        return f"local shard at {self.coordinate} of the mesh" if self.coordinate else "local shard outside of the mesh"

    def index_in_whole(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """Return the index in the tensor of an index in the part."""
        if self.held is None or len(self.held) < len(index):
            return index
        return tuple(nth(runs, i) for runs, i in zip(self.held, index, strict=False))

    def index_here(self, index: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the index in the part of an index in the tensor; None if on other ranks."""
        if self.held is None or len(self.held) < len(index):
            return index
        if not all(low_of(runs, i + 1) > low_of(runs, i) for runs, i in zip(self.held, index, strict=False)):
            return None
        return tuple(low_of(runs, i) for runs, i in zip(self.held, index, strict=False))

    @property
    def pending_text(self) -> str:
        """The pending reduction in words."""
        sums = all("sum" in one.text for one in self.placements if one.is_pending)
        return "a part of a sum that is not reduced yet" if sums else "a part of what is not reduced yet"

    @property
    def num_alike(self) -> int:
        """How many ranks hold the same elements."""
        whole = (one.dim is None and not one.is_pending for one in self.placements)
        return math.prod(n for n, is_whole in zip(self.mesh_shape, whole, strict=True) if is_whole)

    def _ranges(self) -> Iterator[str]:
        for dim, (runs, size) in enumerate(zip(self.held or (), self.whole, strict=True)):
            if runs == ((0, size),) or not runs:
                continue
            told = [f"{low}–{end - 1}" if end - low > 1 else str(low) for low, end in runs[:_MAX_SAID]]
            more = f" and {len(runs) - _MAX_SAID:,} more" if len(runs) > _MAX_SAID else ""
            yield f"{self._name(dim, num_of(runs))} {', '.join(told)}{more} of {size:,}"

    def _name(self, dim: int, num: int) -> str:
        names = _NAMES.get(len(self.whole))
        return f"axis {dim}:" if names is None else names[dim] + "s" * (num != 1)


def shard_facts(dtensor: Any, shape: tuple[int, ...], local_shape: tuple[int, ...]) -> ShardFacts | None:
    """Return the part of a DTensor on this rank; None if a size is symbolic."""
    mesh = dtensor.device_mesh
    mesh_shape, coordinate = tuple(mesh.shape), mesh.get_coordinate()
    if any(type(n) is not int for n in mesh_shape) or -1 in (*shape, *local_shape):
        return None
    placements = tuple(map(_placement, dtensor.placements))
    held = None
    if coordinate is not None:
        coordinate = tuple(coordinate)
        held = indices_held(shape, mesh_shape, coordinate, placements, torch_private.shard_order_of(dtensor))
        # A program may make a DTensor of a local part with other sizes.
        held = held if held is not None and tuple(map(num_of, held)) == local_shape else None
    try:
        rank = int(mesh.get_rank())
    except (RuntimeError, ValueError):
        # The process group is destroyed.
        rank = None
    return ShardFacts(mesh_shape, coordinate, placements, shape, local_shape, rank, held)


def _placement(placement: Any) -> Placement:
    dim = getattr(placement, "dim", None)
    dim = dim if type(dim) is int else None
    return Placement(legible(str(placement)), dim, torch_private.split_factor_of(placement), placement.is_partial())


def indices_held(
    shape: Sequence[int],
    mesh_shape: Sequence[int],
    coordinate: Sequence[int],
    placements: Sequence[Placement],
    order: Sequence[int] | None = None,
) -> tuple[Runs, ...] | None:
    """Return the indices of each dimension on one rank, or None if too scattered.

    The placements are applied in the `order` of the dimensions of the mesh, by default from the first to the last, each
    to what the one before has left, as `torch.chunk` cuts: the last parts may be smaller, or empty.
    """
    held: list[Runs] = [((0, size),) if size else () for size in shape]
    for at in range(len(mesh_shape)) if order is None else order:
        dim, split_factor = placements[at].dim, placements[at].split_factor
        if dim is None:
            continue
        if dim >= len(held):
            return None
        num_pieces = min(split_factor, num_of(held[dim]))
        if num_pieces * len(held[dim]) > _MAX_RUNS:
            return None
        pieces = (_chunk(held[dim], split_factor, i) for i in range(num_pieces))
        held[dim] = _joined([run for piece in pieces for run in _chunk(piece, mesh_shape[at], coordinate[at])])
    return tuple(held)


def num_of(runs: Runs) -> int:
    """Return how many indices there are."""
    return sum([end - low for low, end in runs])


def low_of(runs: Runs, index: int) -> int:
    """Return how many indices there are below one."""
    return sum([min(end, index) - low for low, end in runs if low < index])


def nth(runs: Runs, number: int) -> int:
    """Return the index of that number among them."""
    for low, end in runs:
        if number < end - low:
            return low + number
        number -= end - low
    raise IndexError(number)


def _chunk(runs: Runs, num: int, number: int) -> Runs:
    """Return the chunk of that number of so many, as `torch.chunk` makes them."""
    size = -(-num_of(runs) // num)
    first, last, found = size * number, size * (number + 1), []
    for low, end in runs:
        if first < end - low and last > 0:
            found.append((low + max(first, 0), min(end, low + last)))
        first, last = first - (end - low), last - (end - low)
    return tuple(found)


def _joined(runs: Sequence[tuple[int, int]]) -> Runs:
    found: list[tuple[int, int]] = []
    for low, end in runs:
        if found and found[-1][1] == low:
            found[-1] = (found[-1][0], end)
        else:
            found.append((low, end))
    return tuple(found)

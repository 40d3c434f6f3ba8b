"""Strided elements of main memory, copied block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.memory.arrays import extent_of_array
from tensornp.core.memory.blocks import BLOCK_NUMEL, Block, blocks_of
from tensornp.core.memory.footprint import check_parts
from tensornp.core.tensor.strides import merged

Array = np.ndarray[Any, Any]
_T = TypeVar("_T")


class _Lent:
    """Elements of an array that is held; NumPy makes another array over them."""

    def __init__(
        self, owner: Array, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any
    ) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, True), "shape": shape, "strides": strides, "typestr": dtype.str, "version": 3,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Strided:
    """Elements of `owner`, a tensor or an array.

    `strides` count bytes; `first` is the offset of the first element from that of the owner; `dtype` is that of the
    bits; each element is meant `times` times.
    """

    owner: Any
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    times: int = 1

    @property
    def numel(self) -> int:
        """How many elements are read."""
        return math.prod(self.shape)

    def in_memory_order(self, axis: int | None = None) -> tuple[Strided, int | None]:
        """Return the same elements, each once, from the widest stride to the narrowest; and where `axis` is then.

        An `axis` keeps all its indices in their order, also where they show one element.
        """
        first, times, at = self.first, self.times, None
        pairs: list[tuple[int, int]] = []
        for _, d in sorted([(-abs(step), d) for d, step in enumerate(self.strides)]):
            size, step = self.shape[d], self.strides[d]
            if d == axis:
                at = len(pairs)
            elif size == 1 or (size and not step):
                times *= size
                continue
            elif step < 0:
                # An empty array has no first element.
                first += (size - 1) * step if self.numel else 0
                step = -step
            pairs.append((size, step))
        pairs, at = merged(pairs, at)
        shape, strides = zip(*pairs, strict=True) if pairs else ((), ())
        return Strided(self.owner, first, shape, strides, self.dtype, times), at

    def blocks(self, max_numel: int = BLOCK_NUMEL) -> Iterator[Block]:
        """Yield what covers all elements in order, of no more than `max_numel` each; it depends on the shape alone."""
        return blocks_of(self.shape, max_numel)

    def can_be_read_in_place(self) -> bool:
        """Return False: each block is copied."""
        return False

    def use_each(self, blocks: Sequence[Block], use: Callable[[Array, Block], _T], *, in_place: bool) -> list[_T]:
        """Return what `use` makes of each block, a contiguous array."""
        return [
            use(values, block) for block, values in zip(blocks, self.read_each(blocks, in_place=in_place), strict=True)
        ]

    def read_each(self, blocks: Sequence[Block], *, in_place: bool) -> Iterator[Array]:
        """Yield a copy of each block."""
        return map(self._copied, blocks)

    def _copied(self, block: Block) -> Array:
        first = self.first + sum(i * step for i, step in zip(block.start, self.strides, strict=True))
        if isinstance(self.owner, np.ndarray):
            address = extent_of_array(self.owner).address + first
            return np.array(np.asarray(_Lent(self.owner, address, block.shape, self.strides, self.dtype)), order="C")
        size = self.dtype.itemsize
        steps = [step // size for step in self.strides]
        check_parts(self.owner)
        there = torch.as_strided(self.owner, block.shape, steps, self.owner.storage_offset() + first // size)
        own = quietly(there.clone, memory_format=torch.contiguous_format)
        data = array_of_own(own.reshape(-1).view(torch.uint8))
        return data.view(self.dtype).reshape(block.shape)


def each_once(values: torch.Tensor) -> torch.Tensor:
    """Return a view of `values` with each element once and its dimensions from the widest stride to the narrowest."""
    for dim, step in reversed(list(enumerate(values.stride()))):
        if step == 0 and values.shape[dim] > 0:
            values = values.select(dim, 0)
    order = sorted(range(values.dim()), key=values.stride, reverse=True)
    return values.permute(order) if values.dim() else values.reshape(1)


def array_of_own(own: torch.Tensor) -> Array:
    """Return the array over a tensor in main memory that nobody else has, so that it may be locked."""
    return np.asarray(own)


def bits_of(itemsize: int) -> np.dtype[Any]:
    """Return a dtype of NumPy's for the bits of elements of so many bytes."""
    return np.dtype(f"u{itemsize}" if itemsize in (1, 2, 4, 8) else f"V{itemsize}")


def strided_of_tensor(raw: torch.Tensor, dtype: np.dtype[Any]) -> Strided:
    """Return where the elements lie of an alias that nobody else has, in main memory and without lazy bits."""
    strides = tuple([step * dtype.itemsize for step in raw.stride()])
    return Strided(raw, 0, tuple(raw.shape), strides, dtype)


def strided_of_array(array: Array, dtype: np.dtype[Any]) -> Strided:
    """Return where the elements of a plain array lie."""
    return Strided(array, 0, array.shape, array.strides, dtype)

"""Elements that lie by strides in main memory, read block by block: small arrays in a buffer that is used again."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from tensornp.core.lowlevel import raw_memory
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.lowlevel.raw_memory import Memory, memory_of
from tensornp.core.lowlevel.torch_private import address_of
from tensornp.core.memory.arrays import extent_of_array
from tensornp.core.memory.blocks import BLOCK_NUMEL, Block, blocks_of
from tensornp.core.memory.extents import Extent
from tensornp.core.memory.own_copy import packed
from tensornp.core.tensor.strides import is_in_order, merged

Array = np.ndarray[Any, Any]
_T = TypeVar("_T")


class _Lent:
    """Elements of an array, which is held, as NumPy makes another one over them."""

    def __init__(
        self, owner: Array, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any
    ) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, True), "shape": shape, "strides": strides, "typestr": dtype.str, "version": 3,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Strided:
    """Elements of one memory, which is held while this is.

    `strides` count bytes; `dtype` is that of the bits; each element is meant `times` times.
    """

    memory: Memory
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    times: int = 1

    @property
    def numel(self) -> int:
        """How many elements are read."""
        return math.prod(self.shape)

    @property
    def extent(self) -> Extent:
        """Where they lie."""
        return Extent("cpu", self.address, self.shape, self.strides, self.dtype.itemsize, self.dtype.str)

    def in_memory_order(self, axis: int | None = None) -> tuple[Strided, int | None]:
        """Return the same elements, each once, from the widest stride to the narrowest; and where `axis` is then.

        An `axis` keeps all its indices in their order, also where they show one element.
        """
        address, times, at = self.address, self.times, None
        pairs: list[tuple[int, int]] = []
        for _, d in sorted([(-abs(step), d) for d, step in enumerate(self.strides)]):
            size, step = self.shape[d], self.strides[d]
            if d == axis:
                at = len(pairs)
            elif size == 1 or (size and not step):
                times *= size
                continue
            elif step < 0:
                # Of no element, there is no first one.
                address += (size - 1) * step if self.numel else 0
                step = -step
            pairs.append((size, step))
        pairs, at = merged(pairs, at)
        shape, strides = zip(*pairs, strict=True) if pairs else ((), ())
        return Strided(self.memory, address, shape, strides, self.dtype, times), at

    def blocks(self, max_numel: int = BLOCK_NUMEL) -> Iterator[Block]:
        """Yield what covers all elements in order, of no more than `max_numel` each; it depends on the shape alone."""
        return blocks_of(self.shape, max_numel)

    def can_be_read_in_place(self) -> bool:
        """Return whether the memory is not that of a file."""
        return raw_memory.is_on() and raw_memory.can_be_read_in_place(self.memory, self.numel * self.dtype.itemsize)

    def use_each(self, blocks: Sequence[Block], use: Callable[[Array, Block], _T], *, in_place: bool) -> list[_T]:
        """Return what `use` makes of each block, a contiguous array that is written over by the next one.

        Raises `NotReadError` where the memory cannot be read, or was given back meanwhile.
        """
        # As many of both: what brings them checks the memory once more after the last.
        return [
            use(values, block) for block, values in zip(blocks, self.read_each(blocks, in_place=in_place), strict=True)
        ]

    def read_each(self, blocks: Sequence[Block], *, in_place: bool) -> Iterator[Array]:
        """Yield each block as `use_each` hands it on; who does not take all does not know that the memory was there."""
        if not blocks:
            return
        if not raw_memory.is_on():
            yield from map(self._copied_by_library, blocks)
            return
        self.memory.check(*self.extent.bounds)
        read = self._reader_in_place() if in_place else self._copier(max(math.prod(block.shape) for block in blocks))
        yield from map(read, blocks)
        self.memory.check(self.memory.address, self.memory.address)

    def _reader_in_place(self) -> Callable[[Block], Array]:
        there = raw_memory.array_at(self.address, self.shape, self.strides, self.dtype)

        def read(block: Block) -> Array:
            return np.ascontiguousarray(there[tuple(map(slice, block.start, map(operator.add, *block)))])

        return read

    def _copier(self, max_numel: int) -> Callable[[Block], Array]:
        """Return what has the system copy a block, without gaps into one buffer."""
        buffer, itemsize = np.empty(max_numel, self.dtype), self.dtype.itemsize

        def read(block: Block) -> Array:
            first = self.address + sum(i * step for i, step in zip(block.start, self.strides, strict=True))
            if not is_in_order(block.shape, self.strides, itemsize):
                data = packed(self.memory, first, block.shape, self.strides, itemsize)
                return data.reshape(-1).view(self.dtype).reshape(block.shape)
            part = buffer[: math.prod(block.shape)]
            raw_memory.copy_into(part.view(np.uint8).reshape(1, -1), [first])
            return part.reshape(block.shape)

        return read

    def _copied_by_library(self, block: Block) -> Array:
        """Return a copy that torch or NumPy makes, where no address is read."""
        owner = self.memory.owner
        if isinstance(owner, np.ndarray):
            first = self.address + sum(i * step for i, step in zip(block.start, self.strides, strict=True))
            return np.array(np.asarray(_Lent(owner, first, block.shape, self.strides, self.dtype)), order="C")
        size = self.dtype.itemsize
        steps = [step // size for step in self.strides]
        offset = owner.storage_offset() + sum(i * step for i, step in zip(block.start, steps, strict=True))
        there = torch.as_strided(owner, block.shape, steps, offset)
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
    return Strided(memory_of(raw), address_of(raw), tuple(raw.shape), strides, dtype)


def strided_of_array(array: Array, dtype: np.dtype[Any]) -> Strided:
    """Return where the elements of a plain array lie."""
    extent = extent_of_array(array)
    low, high = extent.bounds
    return Strided(Memory(array, low, high - low), extent.address, extent.shape, extent.strides, dtype)

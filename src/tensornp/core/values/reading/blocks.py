"""What a tensor or an array holds, block by block: small arrays of numbers on the host, whatever the kind.

Each part covers elements that are read alike. Where the order does not matter it is that of memory, and an element that
several indices show is read once. Nothing of the size of the tensor is allocated, except for what no program can read
in part (mkldnn, lazy), and for copies of parts up to 64 MiB while other threads run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch

from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.memory.blocks import BLOCK_NUMEL, Block, blocks_of
from tensornp.core.memory.still import still
from tensornp.core.memory.strided import Strided, array_of_own, bits_of, each_once, strided_of_array, strided_of_tensor
from tensornp.core.tensor.dense import dequantized
from tensornp.core.tensor.dtypes import KNOWN, name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import over_storage, plain
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.strides import num_stored
from tensornp.core.values.reading.decode import decoder, stored_dtype
from tensornp.errors import NoDataError

Array = np.ndarray[Any, Any]
_T = TypeVar("_T")
Use = Callable[[Array, Block], _T]


@dataclass(frozen=True)
class StridedPart:
    """Elements that lie by strides in main memory; `axis` is where the wanted one is among the dimensions."""

    strided: Strided
    dtype: str
    is_conj: bool = False
    is_neg: bool = False
    axis: int | None = None

    def as_codes(self) -> StridedPart:
        """Return the same elements as integers of their bits."""
        bits = bits_of(self.strided.dtype.itemsize)
        return StridedPart(replace(self.strided, dtype=bits), bits.name, axis=self.axis)

    @property
    def times(self) -> int:
        """How often each element is meant."""
        return self.strided.times

    @property
    def per_element(self) -> int:
        """How many numbers one element of a block packs."""
        return values_per_element(self.dtype)

    @property
    def is_row(self) -> bool:
        """Whether the elements lie in a row, as the numbers that they are."""
        strided = self.strided
        is_plain = strided.dtype.isnative and not self.is_conj and not self.is_neg
        return is_plain and strided.strides == (strided.dtype.itemsize,)

    @property
    def numel(self) -> int:
        """How many numbers are read."""
        return self.strided.numel * self.per_element

    @property
    def num_stored(self) -> int:
        """How many of them are stored, at most."""
        return num_stored(self.strided.shape, self.strided.strides, self.strided.dtype.itemsize) * self.per_element

    def blocks(self) -> Iterator[Block]:
        """Yield what covers all elements."""
        return self.strided.blocks(BLOCK_NUMEL // self.per_element)

    def use_each(self, blocks: Sequence[Block], use: Use[_T], *, in_place: bool = False) -> list[_T]:
        """Return what `use` makes of the numbers of each block, which the next one may write over."""
        decode = decoder(self.dtype, is_conj=self.is_conj, is_neg=self.is_neg)
        # Whatever the user has chosen: a NaN or an overflow is what is counted here.
        with np.errstate(all="ignore"):
            return self.strided.use_each(blocks, lambda bits, block: use(decode(bits), block), in_place=in_place)

    def read_each(self, blocks: Sequence[Block], *, in_place: bool = False) -> Iterator[Array]:
        """Yield the numbers of each block, which the next one may write over; take all of them."""
        decode = decoder(self.dtype, is_conj=self.is_conj, is_neg=self.is_neg)
        return map(decode, self.strided.read_each(blocks, in_place=in_place))

    def can_be_read_in_place(self) -> bool:
        """Return whether the memory is not that of a file."""
        return self.strided.can_be_read_in_place()


@dataclass(frozen=True)
class RowsPart:
    """Rows along the first dimension that torch or a class makes numbers of, some at a time."""

    tensor: Any
    info: TensorInfo
    dtype: str = "float32"
    axis: int | None = None
    times: int = 1
    per_element: int = 1

    @property
    def numel(self) -> int:
        """How many numbers are read."""
        return self.info.numel

    def blocks(self) -> Iterator[Block]:
        """Yield what covers all elements, in the order of their indices."""
        shape = self.info.shape
        if not shape or self.info.numel <= BLOCK_NUMEL:
            yield Block((0,) * len(shape), shape)
            return
        step = max(BLOCK_NUMEL // math.prod(shape[1:]), 1)
        for first in range(0, shape[0], step):
            yield Block((first,) + (0,) * (len(shape) - 1), (min(step, shape[0] - first), *shape[1:]))

    def use_each(self, blocks: Sequence[Block], use: Use[_T], *, in_place: bool = False) -> list[_T]:
        """Return what `use` makes of the numbers of each block."""
        with np.errstate(all="ignore"):
            return [use(self._read(block), block) for block in blocks]

    def _read(self, block: Block) -> Array:
        values = self._rows(block)
        return array_of_own(values.to(torch.float32)).reshape(block.shape)

    def _rows(self, block: Block) -> torch.Tensor:
        is_whole, is_of_torch = block.shape == self.info.shape, self.info.kind.has_strides
        if is_of_torch and not is_whole:
            # A view, which reads nothing.
            rows = quietly(self.tensor.narrow, 0, block.start[0], block.shape[0])
            return quietly(still(rows, inspect(rows)).dequantize)
        rows = still(self.tensor, self.info)
        if is_of_torch:
            return quietly(rows.dequantize)
        return dequantized(rows if is_whole else quietly(rows.narrow, 0, block.start[0], block.shape[0]))

    def can_be_read_in_place(self) -> bool:
        """Return False: what is read is made anew."""
        return False


@dataclass(frozen=True)
class DevicePart:
    """Elements on another device, of which a block at a time comes to the host, in the order of their indices.

    `raw` is an alias without lazy bits, whose elements torch can copy.
    """

    raw: torch.Tensor
    dtype: str
    is_conj: bool = False
    is_neg: bool = False
    axis: int | None = None
    times: int = 1

    def as_codes(self) -> DevicePart:
        """Return the same elements as integers of their bits."""
        return replace(self, dtype=bits_of(self.raw.element_size()).name, is_conj=False, is_neg=False)

    @property
    def per_element(self) -> int:
        """How many numbers one element of a block packs."""
        return values_per_element(self.dtype)

    @property
    def numel(self) -> int:
        """How many numbers are read."""
        return self.raw.numel() * self.per_element

    def blocks(self) -> Iterator[Block]:
        """Yield what covers all elements, in the order of their indices."""
        return blocks_of(tuple(self.raw.shape), BLOCK_NUMEL // self.per_element)

    def use_each(self, blocks: Sequence[Block], use: Use[_T], *, in_place: bool = False) -> list[_T]:
        """Return what `use` makes of the numbers of each block."""
        decode = decoder(self.dtype, is_conj=self.is_conj, is_neg=self.is_neg)
        bits = stored_dtype(self.dtype)
        with np.errstate(all="ignore"):
            return [use(decode(self._moved(block).view(bits).reshape(block.shape)), block) for block in blocks]

    def _moved(self, block: Block) -> Array:
        few = self.raw[tuple(slice(i, i + n) for i, n in zip(*block, strict=True))].contiguous()
        return array_of_own(few.reshape(-1).view(torch.uint8).cpu())

    def can_be_read_in_place(self) -> bool:
        """Return False: what is read is moved."""
        return False


@dataclass(frozen=True)
class MaskedPart:
    """Elements of which a mask shows some; both are read in the order of their indices."""

    data: StridedPart | DevicePart
    mask: StridedPart | DevicePart
    is_shown: bool = True
    keeps_hidden: bool = False
    axis: int | None = None
    times: int = 1

    @property
    def dtype(self) -> str:
        """Of the elements."""
        return self.data.dtype

    @property
    def per_element(self) -> int:
        """How many numbers one element of a block packs."""
        return self.data.per_element

    @property
    def numel(self) -> int:
        """How many numbers are read, hidden ones too."""
        return self.data.numel

    def blocks(self) -> Iterator[Block]:
        """Yield what covers all elements, in the order of their indices."""
        return self.data.blocks()

    def use_each(self, blocks: Sequence[Block], use: Use[_T], *, in_place: bool = False) -> list[_T]:
        """Return what `use` makes of the shown numbers of each block, or of masked arrays where `keeps_hidden`."""

        def both(values: Array, block: Block) -> _T:
            (mask,) = self.mask.use_each([block], lambda bits, _: bits.astype(bool), in_place=in_place)
            hidden = ~mask if self.is_shown else mask
            if self.keeps_hidden:
                return use(np.ma.MaskedArray(values, hidden), block)
            return use(values[~hidden], block)

        return self.data.use_each(blocks, both, in_place=in_place)

    def can_be_read_in_place(self) -> bool:
        """Return whether the memory is not that of a file."""
        return self.data.can_be_read_in_place() and self.mask.can_be_read_in_place()


@dataclass(frozen=True)
class ReadPart:
    """Elements of `shape` without gaps, in the order of their indices, that `read` brings: so many from one on, flat.

    They come as NumPy's own numbers, or as integers of their bits.
    """

    read: Callable[[int, int], Array]
    shape: tuple[int, ...]
    dtype: str
    axis: int | None = None
    times: int = 1
    max_stored: int | None = None

    def as_codes(self) -> ReadPart:
        """Return the same elements as integers of their bits."""
        bits, read = bits_of(stored_dtype(self.dtype).itemsize), self.read
        return replace(self, read=lambda first, count: _native(read(first, count)).view(bits), dtype=bits.name)

    @property
    def per_element(self) -> int:
        """How many numbers one element of a block packs."""
        return values_per_element(self.dtype)

    @property
    def numel(self) -> int:
        """How many numbers are read."""
        return math.prod(self.shape) * self.per_element

    @property
    def num_stored(self) -> int:
        """How many of them are stored, at most."""
        return self.numel if self.max_stored is None else self.max_stored * self.per_element

    def blocks(self) -> Iterator[Block]:
        """Yield what covers all elements, in the order of their indices."""
        return blocks_of(self.shape, BLOCK_NUMEL // self.per_element)

    def use_each(self, blocks: Sequence[Block], use: Use[_T], *, in_place: bool = False) -> list[_T]:
        """Return what `use` makes of the numbers of each block."""
        with np.errstate(all="ignore"):
            return [use(values, block) for values, block in zip(self.read_each(blocks), blocks, strict=True)]

    def read_each(self, blocks: Sequence[Block], *, in_place: bool = False) -> Iterator[Array]:
        """Yield the numbers of each block."""
        decode = decoder(self.dtype)
        steps = [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        for block in blocks:
            first = sum(i * step for i, step in zip(block.start, steps, strict=True))
            yield decode(self.read(first, math.prod(block.shape)).reshape(block.shape))

    def can_be_read_in_place(self) -> bool:
        """Return False: what is read is brought from elsewhere."""
        return False


Part = StridedPart | RowsPart | DevicePart | MaskedPart | ReadPart


def _native(array: Array) -> Array:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def part_of_tensor(tensor: torch.Tensor, info: TensorInfo, axis: int | None = None, *, in_order: bool = False) -> Part:
    """Return how a tensor is read whose elements lie by strides, or are made of codes.

    In the order of memory, unless `in_order` asks for that of indices. Call it `outside_modes`.
    """
    if info._is_quantized or info.kind.has_other_meaning:
        return RowsPart(tensor, info, axis=axis)
    raw = plain(tensor)
    if tuple(raw.shape) != info.shape:
        raise NoDataError(f"its shape became {tuple(raw.shape)} as it was read, and was {info.shape}; try again")
    name = name_of(raw.dtype)
    lazy_bits = {"is_conj": info.is_conj, "is_neg": info.is_neg}
    if info.is_conj or info.is_neg:
        raw = over_storage(raw, raw.dtype)
    if raw.device.type != "cpu":
        if in_order or axis is not None or values_per_element(name) > 1 or not raw.numel():
            return DevicePart(raw, name, axis=axis, **lazy_bits)
        stored = each_once(raw)
        return DevicePart(stored, name, times=raw.numel() // stored.numel(), **lazy_bits)
    return _strided_part(strided_of_tensor(raw, stored_dtype(name)), name, axis, in_order, **lazy_bits)


def part_of_array(array: Array, axis: int | None = None, *, in_order: bool = False) -> StridedPart:
    """Return how a plain array is read: one of numbers, those of ml_dtypes included."""
    name = array.dtype.name
    dtype = stored_dtype(name) if name in KNOWN and array.dtype.isnative else array.dtype
    return _strided_part(strided_of_array(array, dtype), name, axis, in_order)


def _strided_part(strided: Strided, name: str, axis: int | None, in_order: bool, **lazy_bits: bool) -> StridedPart:
    at = axis
    if not in_order and values_per_element(name) == 1:
        strided, at = strided.in_memory_order(axis)
    return StridedPart(strided, name, axis=at, **lazy_bits)


def values_per_element(name: str) -> int:
    """Return how many numbers one element packs."""
    return KNOWN[name].values_per_element if name in KNOWN else 1

"""Read the numbers of tensors, arrays and stored values, block by block.

Nothing of the size of the tensor is allocated, and no storage but that of our own buffer is locked: NumPy sees what
torch has copied to it, or elements by DLPack.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.to_numpy import numpy_of
from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.tensor.dtypes import FLOAT4_VALUES, KNOWN, name_of, stored_dtype
from tensornp.core.tensor.form import FLOAT4, over_storage
from tensornp.core.tensor.strides import BLOCK_NUMEL, Block, blocks_of, place_of

Array = np.ndarray[Any, Any]
_GRAIN = 2**15
"""Elements that torch copies in one thread (`at::internal::GRAIN_SIZE`)."""


@dataclass(frozen=True)
class Part:
    """Elements that are read alike.

    `read` yields the numbers of some blocks, flat; the next block overwrites them. float16 and shorter floats come as
    float32, bools as uint8. Each element counts `times` times; `axis` is the requested dimension.
    """

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[Iterable[Block]], Iterator[Array]]
    times: int = 1
    axis: int | None = None
    block_numel: int = BLOCK_NUMEL

    @functools.cached_property
    def per_element(self) -> int:
        """Numbers in one stored element: 2 for float4, else 1."""
        return KNOWN[self.dtype].values_per_element if self.dtype in KNOWN else 1

    @functools.cached_property
    def numel(self) -> int:
        return math.prod(self.shape) * self.per_element

    def blocks(self, several: int = 1) -> Iterator[Block]:
        """Yield the blocks that cover all elements; each may be as large as `several`."""
        return blocks_of(self.shape, several * self.block_numel // self.per_element)


def _by_stride(shape: tuple[int, ...], strides: tuple[int, ...], axis: int | None) -> tuple[list[int], Any, int]:
    """Return the dimensions by falling stride, an index of expanded ones once, and their repeats."""
    expanded = [
        not step and size > 1 and dim != axis for dim, (size, step) in enumerate(zip(shape, strides, strict=True))
    ]
    order = sorted(range(len(shape)), key=lambda dim: abs(strides[dim]), reverse=True)
    index = tuple([slice(1) if once else slice(None) for once in expanded])
    return order, (..., *index), math.prod(itertools.compress(shape, expanded))


def part_of_tensor(raw: torch.Tensor, axis: int | None, *, in_order: bool) -> Part:
    """Return the part of a plain strided tensor, in the order of indices or in that of memory."""
    times = 1
    if not in_order and raw.dtype is not FLOAT4:
        order, index, times = _by_stride(raw.shape, raw.stride(), axis)
        raw, axis = raw[index].permute(order), None if axis is None else order.index(axis)
        if axis is None and raw.is_contiguous():
            raw = raw.view(-1)
    shape, read = tuple(raw.shape), functools.partial(_read_tensor, raw)
    return Part(shape, name_of(raw.dtype), read, times, axis)


def _read_tensor(raw: torch.Tensor, blocks: Iterable[Block]) -> Iterator[Array]:
    shape, packed = tuple(raw.shape), raw.dtype is FLOAT4
    if packed:
        raw = over_storage(raw, torch.uint8)
    wide = _WIDE.get(raw.dtype, raw.dtype)
    is_plain = raw.device.type == "cpu" and raw.is_contiguous() and not (raw.is_conj() or raw.is_neg())
    # DLPack would copy a lazily copied storage.
    if wide is raw.dtype and not packed and is_plain and not torch_private.is_lazily_copied(raw):
        for block in blocks:
            # DLPack locks nothing; a copy takes as long as the sums: benchmark row "the figures".
            shared = np.from_dlpack((raw if block.shape == shape else raw[block.key]).detach()).reshape(-1)
            shared.flags.writeable = False
            yield shared
        return
    buffer = torch.empty(min(raw.numel(), BLOCK_NUMEL), dtype=wide, device="cpu")
    numbers = numpy_of(buffer)
    for block in blocks:
        values = raw[block.key]
        count = values.numel()
        if count > len(buffer):
            buffer = torch.empty(count, dtype=wide, device="cpu")
            numbers = numpy_of(buffer)
        _copy(buffer[:count], values.view(torch.uint8).ne(0) if raw.dtype == torch.bool else values)
        yield float4_numbers(numbers[:count]) if packed else numbers[:count]


_WIDE = {
    torch.bool: torch.uint8,
    torch.complex32: torch.complex64,
    **{getattr(torch, name): torch.float32 for name in KNOWN if name.startswith(("float8", "bfloat", "float16"))},
}


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy in pieces that one thread copies: several scans at once would wait for each other's threads."""
    rows = source.view(-1) if source.is_contiguous() else source.squeeze()
    inner = math.prod(rows.shape[1:])
    step = max(_GRAIN // max(inner, 1), 1)
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        target[first * inner : first * inner + part.numel()].view(part.shape).copy_(part)


def part_of_array(array: Array, axis: int | None, *, in_order: bool) -> Part:
    times = 1
    if not in_order:
        order, index, times = _by_stride(array.shape, array.strides, axis)
        array, axis = array[index].transpose(order), None if axis is None else order.index(axis)
        if axis is None and array.flags.c_contiguous:
            array = array.reshape(-1)
    name = array.dtype.name

    def read(blocks: Iterable[Block]) -> Iterator[Array]:
        return (numbers_of(array[block.key].reshape(-1), name) for block in blocks)

    return Part(array.shape, name, read, times, axis)


def part_of_reader(
    read_flat: Callable[[int, int], Array], shape: tuple[int, ...], name: str, axis: int | None = None
) -> Part:
    """Return the part of stored elements; `read_flat` reads some of them from one on, or their bits."""

    def read(blocks: Iterable[Block]) -> Iterator[Array]:
        for block in blocks:
            found = _native(read_flat(place_of(block.start, shape), math.prod(block.shape))).reshape(-1)
            yield numbers_of(found.view(stored_dtype(name)), name)

    return Part(shape, name, read, 1, axis)


def part_of_boxes(read_box: Callable[[Any], torch.Tensor], shape: tuple[int, ...], name: str, axis: int | None) -> Part:
    """Return the part of stored elements; `read_box` returns those of some slices as a new tensor."""

    def read(blocks: Iterable[Block]) -> Iterator[Array]:
        for block in blocks:
            yield from _read_tensor(read_box(block.key[1:]), [Block((0,) * len(shape), block.shape)])

    # Each box may open the file again.
    return Part(shape, name, read, 1, axis, 8 * BLOCK_NUMEL)


def numbers_of(elements: Array, name: str) -> Array:
    """Return elements of dtype `name` as numbers; `elements` may hold their bits."""
    if name == "bool":
        return np.asarray(elements.view(np.uint8) != 0).view(np.uint8)
    if name == "float4_e2m1fn_x2":
        return float4_numbers(elements)
    facts, elements = KNOWN.get(name), _native(elements)
    if facts is None:
        # A dtype of ml_dtypes that torch does not have.
        return elements.astype(np.int8 if name.startswith(("int", "uint")) else np.float32)
    if facts.numpy and name != "float16":
        return elements
    flat = np.ascontiguousarray(elements).reshape(-1)
    bits = quietly(torch.from_numpy, flat.view(f"i{flat.itemsize}" if flat.itemsize > 1 else "u1"))
    wide = torch.empty(flat.size, dtype=_WIDE[getattr(torch, name)], device="cpu")
    _copy(wide, bits.view(getattr(torch, name)))
    return numpy_of(wide).reshape(elements.shape)


def float4_numbers(codes: Array) -> Array:
    """Return the two numbers in each byte; the last dimension becomes twice as long."""
    values = np.array(FLOAT4_VALUES, np.float32)
    pairs = np.stack((values[codes & 15], values[codes >> 4]), -1)
    return pairs.reshape(*codes.shape[:-1], -1)


def _native(array: Array) -> Array:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

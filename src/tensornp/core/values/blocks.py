"""Read the numbers of tensors, arrays and stored values, block by block.

Nothing of the size of the tensor is allocated, and no storage but that of our own buffer is locked: NumPy sees what
torch has copied to it, or elements by DLPack.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.convert.to_numpy import numpy_of
from tensornp.core.convert.to_tensor import tensor_over
from tensornp.core.lowlevel import torch_private
from tensornp.core.tensor.dtypes import KNOWN, name_of
from tensornp.core.tensor.form import FLOAT4
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.tensor.strides import BLOCK_NUMEL, Block, blocks_of

Array = np.ndarray[Any, Any]
_GRAIN = 2**15
"""Elements that torch copies in one thread (`at::internal::GRAIN_SIZE`)."""


class Part(NamedTuple):
    """Elements that are read alike.

    `read` yields the numbers of some blocks, flat; the next block overwrites them. float16 and shorter floats come as
    float32, bools as uint8. Each element counts `times` times; `axis` is the requested dimension. A flat part may know
    the `order` of its dimensions, from the widest stride to the narrowest.
    """

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[Iterable[Block]], Iterator[Array]]
    per_element: int = 1
    """Numbers in one stored element: 2 for float4, else 1."""
    times: int = 1
    axis: int | None = None
    block_numel: int = 0
    order: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        return math.prod(self.shape) * self.per_element

    def blocks(self, several: int = 1) -> Iterator[Block]:
        """Yield the blocks that cover all elements; each may be as large as `several`, or `block_numel`."""
        return blocks_of(self.shape, max(several * BLOCK_NUMEL, self.block_numel) // self.per_element)


def _by_stride(shape: tuple[int, ...], strides: tuple[int, ...], axis: int | None) -> tuple[list[int], Any, int]:
    """Return the dimensions by falling stride, an index of expanded ones once, and their repeats."""
    expanded = [
        not step and size > 1 and dim != axis for dim, (size, step) in enumerate(zip(shape, strides, strict=True))
    ]
    order = sorted(range(len(shape)), key=lambda dim: abs(strides[dim]) if shape[dim] > 1 else 0, reverse=True)
    index = tuple([slice(1) if once else slice(None) for once in expanded])
    return order, (..., *index), math.prod(itertools.compress(shape, expanded))


def part_of_tensor(raw: torch.Tensor, axis: int | None, *, in_order: bool) -> Part:
    """Return the part of a plain strided tensor, in the order of indices or in that of memory."""
    times, order = 1, None
    if not in_order and raw.dtype is not FLOAT4:
        dims, index, times = _by_stride(raw.shape, raw.stride(), axis)
        raw, axis = raw[index].permute(dims), None if axis is None else dims.index(axis)
        if axis is None and raw.is_contiguous():
            raw, order = raw.view(-1), tuple(dims) if times == 1 and raw.numel() else None
    shape, read = tuple(raw.shape), functools.partial(_read_tensor, raw)
    return Part(shape, name_of(raw.dtype), read, 2 if raw.dtype is FLOAT4 else 1, times, axis, order=order)


def _read_tensor(raw: torch.Tensor, blocks: Iterable[Block]) -> Iterator[Array]:
    wide = _WIDE.get(raw.dtype, raw.dtype)
    is_plain = raw.device.type == "cpu" and raw.is_contiguous() and not (raw.is_conj() or raw.is_neg())
    # DLPack would copy a lazily copied storage.
    if wide is raw.dtype and is_plain and not torch_private.is_lazily_copied(raw):
        # DLPack locks nothing; a copy takes as long as the sums: benchmark row "the figures".
        shared = np.from_dlpack(raw.detach())
        shared.flags.writeable = False
        for block in blocks:
            yield shared[block.key].reshape(-1)
        return
    buffer = torch.empty(0, dtype=wide, device="cpu")
    for block in blocks:
        values = STRIDED.dense(raw[block.key])
        count = values.numel()
        if count > len(buffer):
            buffer = torch.empty(count, dtype=wide, device="cpu")
        _copy(buffer[:count], values.view(torch.uint8).ne(0) if raw.dtype == torch.bool else values)
        yield numpy_of(buffer)[:count]


_WIDE: dict[torch.dtype, torch.dtype] = {torch.bool: torch.uint8, torch.float16: torch.float32} | {
    getattr(torch, name): getattr(torch, one.widened)
    for name, one in KNOWN.items()
    if one.widened and hasattr(torch, name)
}


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy in pieces that one thread copies: several scans at once would wait for each other's threads."""
    rows = source.view(-1) if source.is_contiguous() else source.squeeze()
    inner = math.prod(rows.shape[1:])
    step = max(_GRAIN // max(inner, 1), 1)
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        target[first * inner : first * inner + part.numel()].view(part.shape).copy_(part)


def part_of_reader(
    read: Callable[[Block], torch.Tensor], shape: tuple[int, ...], name: str, axis: int | None, block_numel: int = 0
) -> Part:
    """Return the part of stored elements; `read` returns those of a block as a new tensor."""
    per_element = KNOWN[name].values_per_element if name in KNOWN else 1
    return Part(
        shape, name, lambda blocks: map(_numbers_in, map(read, blocks)), per_element, axis=axis, block_numel=block_numel
    )


def _numbers_in(raw: torch.Tensor) -> Array:
    (numbers,) = _read_tensor(raw, [Block((0,) * raw.ndim, tuple(raw.shape))])
    return numbers


def numbers_of(elements: Array, name: str) -> Array:
    """Return elements of dtype `name` as numbers; `elements` may hold their bits."""
    numbers = _numbers_in(tensor_over(elements, name))
    return numbers.reshape(elements.shape if numbers.size == elements.size else (*elements.shape[:-1], -1))

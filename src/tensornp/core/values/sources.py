"""Divide a tensor, an array or a file into parts that are read alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.convert.plan import decide
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel.attributes import ONE_OR_ALL, is_array, is_tensor, refused
from tensornp.core.lowlevel.text import quoted
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import LOCAL, PENDING, SPARSE
from tensornp.core.tensor.shards import ShardFacts
from tensornp.core.tensor.stand_ins import stand_in_of, stood_for
from tensornp.core.tensor.strides import BLOCK_NUMEL, Block, place_of
from tensornp.core.values.blocks import Array, Part, part_of_reader, part_of_tensor
from tensornp.core.values.stored import StoredValues, values_of_array
from tensornp.errors import BadRequestError, NotATensorError


class Source(NamedTuple):
    """The parts of one tensor or array, in the order of memory or of indices.

    `order` is that of the only part. Numbers of a source that `is_dequantized` are not the stored ones.
    """

    parts: tuple[Part, ...]
    dtype: str
    shape: tuple[int, ...]
    scope: str = "all elements"
    axis: int | None = None
    nested_shapes: tuple[tuple[int, ...], ...] = ()
    order: tuple[int, ...] | None = None
    shard: ShardFacts | None = None
    is_dequantized: bool = False

    @property
    def numel(self) -> int:
        return sum([part.times * part.numel for part in self.parts])

    def index_of(self, flat: int) -> tuple[int, ...]:
        """Return the index of an element by its number: in a sharded tensor, the one in the whole."""
        for number, part in enumerate(self.nested_shapes):
            if flat < math.prod(part):
                return (number, *map(int, np.unravel_index(flat, part)))
            flat -= math.prod(part)
        index = tuple(int(i) for i in np.unravel_index(flat, self.shape)) if self.shape else ()
        return self.shard.index_in_whole(index) if self.shard is not None else index

    def blocks(self) -> Iterator[Array]:
        for part in self.parts:
            yield from part.read(part.blocks())


def source_of(
    obj: Any,
    axis: int | None = None,
    *,
    info: TensorInfo | None = None,
    in_order: bool = False,
    is_dense: bool = False,
    caller: str = "stats",
) -> Source:
    """Return the source of `obj`, outside all modes; `is_dense` makes sparse tensors dense in new memory."""
    if is_array(obj):
        if isinstance(obj, np.ma.MaskedArray) and not in_order and axis is None:
            shown = obj.compressed()
            return source_of(shown)._replace(scope=f"{shown.size:,} of {obj.size:,} shown")
        return source_of(values_of_array(obj), axis, in_order=in_order)
    if type(obj) is StoredValues:
        return _of_stored(obj, checked_axis(axis, obj.shape), in_order)
    if stand_in_of(obj) is not None:
        return source_of(stood_for(obj), axis, in_order=in_order, is_dense=is_dense, caller=caller)
    if not is_tensor(obj):
        raise NotATensorError(f"{caller} takes a tensor or an array, not {refused(obj, of_model=ONE_OR_ALL)}")
    if info is None:
        info = inspect(obj)
        if info.kind is not LOCAL:
            decide(info)
    if info.kind.is_masked and (in_order or axis is not None):
        raise BadRequestError(info.kind.refusal)
    if info.kind.is_masked or (is_dense and info.kind is SPARSE):
        return source_of(to_numpy(obj), axis, in_order=in_order)
    return _of_tensor(obj, info, axis, in_order)


def _of_stored(values: StoredValues, axis: int | None, in_order: bool) -> Source:
    shape, read_flat = values.shape, values.read_flat
    if read_flat is None:
        # Each box may open the file again.
        part = part_of_reader(lambda block: values.read_box(block.key[1:]), shape, values.dtype, axis, 8 * BLOCK_NUMEL)
    else:
        # Flat, as a contiguous tensor is read: the same blocks give the same bits.
        shape = shape if in_order or axis is not None else (math.prod(shape),)

        def read(block: Block) -> torch.Tensor:
            return read_flat(place_of(block.start, shape), math.prod(block.shape))

        part = part_of_reader(read, shape, values.dtype, axis)
    order = tuple(range(len(values.shape))) if axis is None else None
    return Source((part,), values.dtype, values.info._array_shape, axis=axis, order=order)


def _of_tensor(tensor: Any, info: TensorInfo, axis: int | None, in_order: bool) -> Source:
    kind = info.kind
    if kind is LOCAL:
        return _of_local(tensor, info, axis, in_order)
    if kind is PENDING:
        return source_of(kind.awaited(tensor), axis, in_order=in_order)
    if axis is not None and (kind is SPARSE or kind.gives_several):
        cure = "pass one of t.unbind()" if kind.gives_several else "pass tnp.to_numpy(t)"
        raise BadRequestError(f"a {kind} tensor has no statistics by axis; {cure}, or omit axis")
    whole = info._array_shape
    at = checked_axis(axis, whole)
    stored = kind.stored(tensor)
    num_zeros = info.numel - sum([part.numel() for part in stored])
    if num_zeros:
        # One zero stands for all that are not stored.
        stored.append(stored[0].new_zeros(1).expand(num_zeros))
    parts = [part_of_tensor(one, at, in_order=in_order) for one in stored]
    # Other parts make another tensor, also if there are none.
    shapes = (*(tuple(part.shape) for part in stored), ()) if kind.gives_several else ()
    return Source(
        tuple(parts),
        parts[0].dtype if parts else name_of(info.dtype),
        shapes[0] if shapes else whole,
        axis=at,
        nested_shapes=shapes,
        order=parts[0].order if info.stride is not None else None,
        is_dequantized=bool(kind.values_dtype) or kind.has_other_meaning,
    )


def _of_local(tensor: Any, info: TensorInfo, axis: int | None, in_order: bool) -> Source:
    if info.shard is not None and info.shard.pending:
        # The values are the sum over all ranks.
        decide(info)
    source = source_of(info.kind.inner(tensor), axis, in_order=in_order)
    if info.data_state == "available" or info.shard is None:
        return source
    # The values of packed elements have other indices.
    shard = info.shard if source.shape == info.shard.shape else None
    return source._replace(scope=info.shard.scope, shard=shard)


def nbytes_unasked(info: TensorInfo) -> int:
    """Return the bytes that automatic statistics would read; 0 if they must be requested."""
    is_there = (info.data_state == "available" or info._has_part) and not info._is_pending
    if not is_there or info.device.type != "cpu":
        return 0
    if info.inner is not None:
        return nbytes_unasked(info.inner)
    return info.nbytes if info.kind.has_other_meaning else info._held_nbytes


def checked_axis(axis: int | None, shape: tuple[int, ...]) -> int | None:
    if axis is None:
        return None
    is_number = isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)
    if not is_number or not -len(shape) <= axis < len(shape):
        raise BadRequestError(f"axis must be a dimension of shape {shape} or None, got {quoted(axis)}")
    return int(axis) % len(shape)

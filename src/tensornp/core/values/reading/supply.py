"""From a tensor or an array of any kind to the parts in which its values are read."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.plan import check_readable
from tensornp.core.convert.sharded import has_part
from tensornp.core.convert.to_numpy import to_numpy
from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import is_array
from tensornp.core.lowlevel.text import quoted, with_article
from tensornp.core.memory.still import parts_still, still
from tensornp.core.tensor import kinds
from tensornp.core.tensor.dense import check_indices
from tensornp.core.tensor.dtypes import KNOWN, name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import form_of, is_storage, plain, tensor_of
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.reading import held_tensor, mask_of, stored_parts
from tensornp.core.tensor.shards import ShardFacts
from tensornp.core.tensor.stand_ins import is_tensor_like, stand_in_of, stood_for
from tensornp.core.tensor.strides import order_of
from tensornp.core.tensor.weight import ONE_OR_ALL, refused
from tensornp.core.values.reading.blocks import (
    DevicePart,
    MaskedPart,
    Part,
    ReadPart,
    RowsPart,
    StridedPart,
    part_of_array,
    part_of_tensor,
)
from tensornp.core.values.reading.scopes import ALL
from tensornp.core.values.reading.stored import StoredValues
from tensornp.errors import BadRequestError, NotATensorError, UnsupportedArrayError

MAX_REPEATED = 2**32
"""Elements of an expanded tensor that are read one by one at most."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Supply:
    """The parts of one tensor or array.

    Attributes
    ----------
    parts : tuple of Part
        How its stored elements are read.
    dtype : str
        Of the numbers, by which they are counted.
    shape : tuple of int
        Of the array that it would become; of a nested tensor that of the first part.
    zeros : int
        Elements that are zero, and stored nowhere.
    scope : str
        What the parts cover, in words.
    is_masked : bool
        Whether some elements are hidden.
    axis : int or None
        The one of `shape` that was asked for, counted from the first.
    order : tuple of int or None
        The dimensions of `shape` from the widest stride to the narrowest, where there is one part, flat, which brings
        all elements so.
    shard : ShardFacts or None
        Where the parts lie in a tensor that is spread over ranks, of which they are what this one holds.
    """

    parts: tuple[Part, ...]
    dtype: str
    shape: tuple[int, ...]
    zeros: int = 0
    scope: str = ALL
    is_masked: bool = False
    axis: int | None = None
    nested_shapes: tuple[tuple[int, ...], ...] = ()
    order: tuple[int, ...] | None = None
    shard: ShardFacts | None = None

    @functools.cached_property
    def numel(self) -> int:
        """How many elements are meant, hidden ones too."""
        return self.zeros + sum([part.times * part.numel for part in self.parts])

    def index(self, flat: int) -> tuple[int, ...]:
        """Return the index of an element by its number in the order of indices; of a part, that in the whole."""
        index = tuple(int(i) for i in np.unravel_index(flat, self.shape)) if self.shape else ()
        return self.shard.index_in_whole(index) if self.shard is not None else index

    @property
    def part_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of all parts of a nested tensor; of another one, its own."""
        return self.nested_shapes or (self.shape,)

    @property
    def has_codes(self) -> bool:
        """Whether what is stored are the numbers themselves, and not codes that are scaled."""
        return not any(isinstance(part, RowsPart) for part in self.parts)

    def as_codes(self) -> Supply | None:
        """Return the same elements as unsigned integers of their bits; None of what is made of codes."""
        parts = [
            part.as_codes() if isinstance(part, (StridedPart, DevicePart, ReadPart)) else None for part in self.parts
        ]
        told = [part for part in parts if part is not None]
        return replace(self, parts=tuple(told)) if len(told) == len(parts) else None

    @property
    def zero(self) -> float | int:
        """Zero as one of the elements."""
        return 0 if self.dtype.startswith(("int", "uint", "bool")) else 0.0


def supply_of(
    obj: Any,
    axis: int | None = None,
    *,
    info: TensorInfo | None = None,
    in_order: bool = False,
    is_dense: bool = False,
    caller: str = "stats",
) -> Supply:
    """Return the parts in which `obj` is read; in the order of memory, unless `in_order` asks for that of indices.

    `info` is what `inspect` tells of `obj`, where it was asked already. With `is_dense`, a sparse one is laid out
    densely, in new memory. Call it `outside_modes`. A result that is under way is
    waited for; no collective is issued.

    Raises
    ------
    NotATensorError, UnsupportedArrayError
        If `obj` has no numbers.
    NoDataError, UnsupportedTensorError
        As conversion does: meta, fake, freed.
    BadRequestError
        If there is no such `axis`, or the kind of tensor cannot be told by it.
    """
    if is_storage(obj):
        obj = tensor_of(obj)
    if is_array(obj):
        return _of_array(obj, axis, in_order)
    if issubclass(type(obj), StoredValues):
        return _of_stored(obj, axis)
    if not is_tensor_like(obj):
        raise NotATensorError(f"{caller} takes a tensor or an array, not {refused(obj, of_model=ONE_OR_ALL)}")
    if stand_in_of(obj) is not None:
        return supply_of(stood_for(obj), axis, in_order=in_order, is_dense=is_dense, caller=caller)
    info = info or inspect(obj)
    if is_dense and info.kind is kinds.SPARSE:
        return _of_array(to_numpy(obj), axis, in_order)
    return _of_tensor(obj, info, axis, in_order)


def _of_array(array: Any, axis: int | None, in_order: bool) -> Supply:
    plain_array = np.ndarray.view(array, np.ndarray)
    dtype = plain_array.dtype
    if dtype.kind not in "biufc" and (dtype.kind != "V" or dtype.names or not dtype.itemsize or dtype.subdtype):
        raise UnsupportedArrayError(f"an array of {dtype} has no numbers; turn it into some first, with .astype()")
    if dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16):
        raise UnsupportedArrayError(
            f"an array of {dtype} has longer numbers than are read here; take .astype(np.float64)"
        )
    if dtype.kind == "V" and dtype.type is np.void:
        raise UnsupportedArrayError(f"an array of {dtype} has no numbers; view its bytes as some first, with .view()")
    at = checked_axis(axis, plain_array.shape)
    mask = np.ma.getmaskarray(array) if issubclass(type(array), np.ma.MaskedArray) else None
    part: Part = part_of_array(plain_array, at, in_order=in_order or mask is not None)
    if mask is not None:
        hidden = part_of_array(mask, at, in_order=True)
        part = _masked(part, hidden, False, at, in_order)
    steps = tuple(step // max(dtype.itemsize, 1) for step in plain_array.strides)
    order = order_of(plain_array.shape, steps) if _is_flat(part) else None
    return Supply((part,), dtype.name, plain_array.shape, is_masked=mask is not None, axis=at, order=order)


def _of_stored(values: StoredValues, axis: int | None) -> Supply:
    at = checked_axis(axis, values.shape)
    # Flat, as a tensor without gaps is read: the same blocks give the same bits.
    shape = values.shape if at is not None else (math.prod(values.shape),)
    part = ReadPart(values.read_flat, shape, values.dtype, at, max_stored=values.max_stored)
    return Supply((part,), values.dtype, values.array_shape, axis=at)


def _of_tensor(tensor: Any, info: TensorInfo, axis: int | None, in_order: bool) -> Supply:
    if info.kind is kinds.LOCAL:
        return _of_local(tensor, info, axis, in_order)
    # What has no values is refused as conversion refuses it.
    check_readable(info)
    if info.kind is kinds.PENDING:
        awaited = tensor.trigger_wait()
        return _of_tensor(awaited, inspect(awaited), axis, in_order)
    if info.kind is kinds.NESTED:
        return _of_nested(tensor, info, axis)
    if info.kind.is_masked:
        return _of_masked(tensor, info, axis, in_order)
    if info.kind is kinds.SPARSE:
        return _of_sparse(tensor, info, axis, in_order)
    if info.kind is kinds.ZERO:
        refuse_axis(info, axis)
        return Supply((), name_of(info.dtype), info.shape, zeros=info.numel)
    if info.kind is kinds.MKLDNN or info.kind is kinds.LAZY:
        return _of_array(to_numpy(tensor, copy=True), axis, in_order)
    shape = info._array_shape
    at = checked_axis(axis, shape)
    part = part_of_tensor(tensor, info, at, in_order=in_order)
    order = order_of(info.shape, info.stride) if info.stride and _is_flat(part) else None
    return Supply((part,), part.dtype, shape, axis=at, order=order)


def _is_flat(part: Part) -> bool:
    """Return whether the elements lie in one row, each meant once."""
    return isinstance(part, StridedPart) and len(part.strided.shape) <= 1 and part.times == 1


def _of_local(tensor: Any, info: TensorInfo, axis: int | None, in_order: bool) -> Supply:
    is_whole = form_of(tensor).state == "available"
    if not is_whole and any(place.is_partial() for place in tensor.placements):
        # What this rank holds is to be added to what the others hold, and is none of the values.
        check_readable(info)
    local: Any = held_tensor(tensor, info.kind)
    supply = _of_tensor(local, inspect(local), axis, in_order)
    if is_whole or info.shard is None:
        return supply
    # Of packed elements, the values have other indices.
    shard = info.shard if supply.shape == info.shard.shape else None
    return replace(supply, scope=info.shard.scope, shard=shard)


def _of_nested(tensor: Any, info: TensorInfo, axis: int | None) -> Supply:
    refuse_axis(info, axis)
    parts = parts_still(tensor, info)
    found = [part_of_tensor(part, inspect(part)) for part in parts]
    shape = tuple(parts[0].shape) if parts else ()
    shapes = tuple(tuple(part.shape) for part in parts)
    # Other parts make another tensor, also where there are none.
    return Supply(tuple(found), name_of(info.dtype), shape, nested_shapes=(*shapes, ()))


def _of_masked(tensor: Any, info: TensorInfo, axis: int | None, in_order: bool) -> Supply:
    at = checked_axis(axis, info.shape)
    inner: Any = held_tensor(tensor, info.kind)
    mask = mask_of(tensor)
    if inspect(inner).kind is not kinds.STRIDED:
        array = to_numpy(tensor, copy=True)
        return _of_array(array, axis, in_order)
    data, shown = (part_of_tensor(part, inspect(part), at, in_order=True) for part in (inner, mask))
    return Supply((_masked(data, shown, True, at, in_order),), data.dtype, info.shape, is_masked=True, axis=at)


def _masked(data: Part, mask: Part, is_shown: bool, axis: int | None, in_order: bool) -> MaskedPart:
    assert not isinstance(data, MaskedPart) and not isinstance(mask, MaskedPart)
    return MaskedPart(data, mask, is_shown, in_order or axis is not None, axis)  # type: ignore[arg-type]  # neither is made of codes


def _of_sparse(tensor: Any, info: TensorInfo, axis: int | None, in_order: bool) -> Supply:
    refuse_axis(info, axis)
    raw = plain(still(tensor, info))
    check_indices(raw)
    if raw.layout == torch.sparse_coo and not raw.is_coalesced():
        indices, values = torch_private.stored_elements(raw)
        # Made anew, since torch would keep the sums in the user's own tensor; short floats cannot be added.
        wide = KNOWN[name_of(values.dtype)].widened
        values = values.to(getattr(torch, wide)) if wide else values
        made = torch.sparse_coo_tensor(indices, values, raw.shape, check_invariants=True, is_coalesced=False)
        values = made.coalesce().values()
    else:
        values = torch_private.stored_elements(raw)[1] if raw.layout == torch.sparse_coo else raw.values()
    part = part_of_tensor(values, inspect(values))
    return Supply((part,), part.dtype, info.shape, zeros=info.numel - values.numel())


def nbytes_unasked(tensor: Any, info: TensorInfo) -> int:
    """Return how many bytes of main memory statistics would read; 0 where nobody may read them who was not asked.

    That is on an accelerator, where values are not computed yet, and while a collective is making them.
    """
    is_there = info.data_state == "available" or (info.shard is not None and has_part(info))
    if not is_there or info.device.type != "cpu" or info.kind.is_computed or info._is_pending:
        return 0
    if info.inner is not None:
        held: Any = held_tensor(tensor, info.kind)
        return nbytes_unasked(held, info.inner)
    if info.kind is kinds.SPARSE:
        return sum(part.numel() * part.element_size() for part in stored_parts(plain(tensor)))
    strides = info.stride if info.kind is kinds.STRIDED and info.stride is not None else (1,) * len(info.shape)
    return info.itemsize * math.prod([n for n, step in zip(info.shape, strides, strict=True) if step or not n])


def checked_axis(axis: int | None, shape: tuple[int, ...]) -> int | None:
    """Return `axis` counted from the first; BadRequestError where the shape has none such."""
    if axis is None:
        return None
    try:
        at = operator.index(axis)
        if isinstance(axis, bool):
            raise TypeError
    except TypeError:
        raise BadRequestError(f"axis is the number of one dimension, not {quoted(axis)}") from None
    if not -len(shape) <= at < len(shape):
        if not shape:
            raise BadRequestError("a single number has no axis; leave axis out")
        reach = f"from {-len(shape)} to {len(shape) - 1}"
        raise BadRequestError(f"there is no axis {quoted(at)} in shape {shape}; choose one {reach}")
    return at % len(shape)


def refuse_endless(supply: Supply, caller: str) -> None:
    """Raise BadRequestError where the same elements would be read over and over, for hours."""
    for part in supply.parts:
        if isinstance(part, StridedPart | ReadPart) and part.numel > max(part.num_stored, MAX_REPEATED):
            raise BadRequestError(
                f"{caller} would read {part.numel:,} elements of which {part.num_stored:,} are stored; "
                "take an index of each expanded dimension"
            )


def refuse_axis(info: TensorInfo, axis: int | None) -> None:
    """Raise BadRequestError for an axis of a tensor whose elements are not told apart by it."""
    if axis is not None:
        said = f"{with_article(str(info.kind))} tensor is not told by axis"
        raise BadRequestError(f"{said}; {info.kind.axis_cure}, or leave axis out")

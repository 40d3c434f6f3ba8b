"""The records of a tensor's metadata, which every decision is made from."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import torch

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.tensor import dtypes, kinds
from tensornp.core.tensor.kind import DataState, Kind
from tensornp.core.tensor.shards import ShardFacts

_NUM_PACKED = {
    getattr(torch, name): facts.values_per_element
    for name, facts in dtypes.KNOWN.items()
    if facts.values_per_element > 1 and hasattr(torch, name)
}
"""Values in one element, of dtypes that pack several."""


@dataclass(frozen=True, slots=True)
class StorageSpan:
    """The bytes of a storage, and those that one tensor reaches in it.

    Attributes
    ----------
    address : int
        Address of the tensor's first element; 0 where there is no memory.
    nbytes : int
        Bytes that the storage holds now.
    reach : int
        Bytes from the start of the storage to the end of the tensor's last element; past `nbytes`, it was freed.
    resizable : bool
        Whether the storage may still be resized: any `Tensor.numpy` on it ends that for good.
    """

    address: int
    nbytes: int
    reach: int
    resizable: bool


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """The metadata of one tensor; reading it touched no value.

    `dtype`, `device` and `layout` are torch's own objects. `itemsize` and `nbytes` count bytes: `nbytes` those of the
    logical elements, whatever the storage holds. A size that is symbolic or ragged is -1, and `numel` then 0. `stride`
    and `storage_offset` count elements, and are None for layouts without strides. `version` is None where torch keeps
    none (inference tensors). `is_readonly_map` is looked up by `with_page_protection` only, since that walks the memory
    map of the process.

    `has_grad` is None where `.grad` was not looked at: torch does not guard it against another thread that runs.

    `next_functions` are the operations one step behind `grad_fn`, the first few; `grad_dtype` and `grad_layout` are
    those of `.grad` where it is filled. `saved_for` names the operations whose backward has saved elements of this
    tensor, which only a search through the graphs around it can tell: a card and `%tonumpy` do that.
    `is_buffer` is None where it is not known: no tensor says whether a
    module has registered it, but one made by `nn.Buffer`; a card finds that out where a name leads to the module.

    `is_unsharded` tells that FSDP has gathered a parameter into this storage, which it frees when it reshards.

    `kind` says how the values are held: by strides, in another layout, or in another tensor, of which `inner` is then
    the metadata and `access` the expression; `detail` says more in a few words ("4 stored", "3 parts"), and
    `part_nbytes` counts the bytes of the indices and values of a sparse one. `wrapper` names
    what stands between the tensor and its values, and `inner_names` the attributes that hold tensors, where it is of a
    class whose values only its own code knows. `shard` tells which part of a DTensor this rank holds, and
    `spread` what else is noted on how it is spread over
    ranks, a few words each.
    """

    type_name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    itemsize: int
    numel: int
    device: torch.device
    layout: torch.layout
    stride: tuple[int, ...] | None = None
    storage_offset: int | None = None
    requires_grad: bool = False
    is_leaf: bool = True
    grad_fn: str | None = None
    _next_functions: tuple[str, ...] = ()
    has_grad: bool | None = False
    _retains_grad: bool = False
    _grad_dtype: torch.dtype | None = None
    _grad_layout: torch.layout | None = None
    _saved_for: tuple[str, ...] = ()
    is_parameter: bool = False
    is_buffer: bool | None = None
    is_conj: bool = False
    is_neg: bool = False
    is_shared: bool = False
    is_pinned: bool = False
    is_inference: bool = False
    is_contiguous: bool = True
    _has_tangent: bool = False
    version: int | None = None
    storage: StorageSpan | None = None
    _is_readonly_map: bool = False
    _is_unsharded: bool = False
    data_state: DataState = "available"
    _wrapper: str = ""
    _inner_names: tuple[str, ...] = ()
    kind: Kind = kinds.STRIDED
    detail: str = ""
    inner: TensorInfo | None = None
    _access: str = "t"
    _part_nbytes: int | None = None
    shard: ShardFacts | None = None
    _spread: tuple[str, ...] = ()

    @property
    def _is_quantized(self) -> bool:
        """Whether the elements are codes of a quantized tensor, which have a scale."""
        return bool(self.kind.values_dtype)

    @property
    def _is_pending(self) -> bool:
        """Whether a collective is still writing the values, as far as `inner` tells too."""
        is_awaited = self.kind is kinds.PENDING and self.detail == kinds.WRITING
        return is_awaited or (self.inner is not None and self.inner._is_pending)

    @property
    def _numel_elsewhere(self) -> int:
        """Elements that this rank does not hold, where the tensor is spread over several."""
        here = self.inner.numel if self.inner is not None else None
        return self.numel - here if self.data_state == "remote" and here is not None else 0

    @property
    def _nbytes_elsewhere(self) -> int:
        """The bytes of these."""
        return self._numel_elsewhere * self.itemsize

    @property
    def _array_shape(self) -> tuple[int, ...]:
        """The shape of the array: that of the tensor, or longer where one element packs several values."""
        num_packed = _NUM_PACKED.get(self.dtype, 1)
        if num_packed == 1:
            return self.shape
        return (*self.shape[:-1], (self.shape or (1,))[-1] * num_packed)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements: `numel * itemsize`."""
        return self.numel * self.itemsize

    @property
    def _held_nbytes(self) -> int:
        """Bytes of stored indices and values; expanded elements count once."""
        if self._part_nbytes is not None:
            return self._part_nbytes
        # Of one in parts on several ranks, how this one has its own says nothing of the others.
        if self.stride is None or not self._is_expanded or self.data_state == "remote":
            return self.nbytes
        sizes = (size if step else min(size, 1) for size, step in zip(self.shape, self.stride, strict=True))
        return math.prod(sizes) * self.itemsize

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def _is_expanded(self) -> bool:
        """Whether a stride of 0 shows one element at several indices."""
        return self.stride is not None and any(
            step == 0 and size > 1 for size, step in zip(self.shape, self.stride, strict=True)
        )

    @property
    def _may_overlap_itself(self) -> bool:
        """Whether two indices may address the same element.

        Dimensions sorted by stride cannot overlap if each stride steps over all that the smaller ones reach; anything
        else is said to overlap, although rare interleaved strides do not.
        """
        if self.stride is None or self.numel <= 1:
            return False
        reach = 0
        for step, size in sorted((s, n) for n, s in zip(self.shape, self.stride, strict=True) if n > 1):
            if step <= reach:
                return True
            reach += step * (size - 1)
        return False

    _mime_, _repr_html_ = mime_of, html_of

    def __str__(self) -> str:
        return "\n".join(f"{field.name.lstrip('_')}: {getattr(self, field.name)}" for field in dataclasses.fields(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # A newline within a text would not be counted.
        for i, line in enumerate(str(self).split("\n")):
            if i:
                printer.break_()
            printer.text(line)

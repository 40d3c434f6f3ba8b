"""The records of a tensor's metadata, which every decision is made from."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch

from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.tensor import kinds
from tensornp.core.tensor.form import FLOAT4, DataState, Kind
from tensornp.core.tensor.shards import ShardFacts


@dataclass(frozen=True, slots=True)
class StorageSpan:
    """The bytes of a storage, and those up to a tensor's last element: more, if memory was freed."""

    address: int
    nbytes: int
    reach: int


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """The metadata of one tensor; no value was read.

    `dtype`, `device` and `layout` are torch's own objects. `nbytes` counts the bytes of the logical elements. A size
    that is symbolic or ragged is -1, and `numel` is then 0. `stride` and `storage_offset` count elements, and are None
    for layouts without strides. `version` is None for inference tensors. `has_grad` is None if another thread runs a
    backward. `is_buffer` is None if it is not known: a card finds out if a name leads to the module.

    `kind` is the way to hold the values, with a few words in `detail` ("4 stored"). `inner` describes the tensor inside
    that holds the values, and `_access` is its expression. `shard` describes the part of a DTensor on this rank.
    `with_page_protection` sets `_is_readonly_map`; a search through the graphs around a tensor sets `_saved_for`.
    `_is_unsharded` means that FSDP has gathered a parameter into this storage. `_wrapper` names the class or tracer
    around the values, and `_inner_names` its attributes with tensors. `_part_nbytes` counts stored parts.
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
    has_grad: bool | None = False
    _retains_grad: bool = False
    _saved_for: tuple[str, ...] = ()
    is_parameter: bool = False
    is_buffer: bool | None = None
    is_conj: bool = False
    is_neg: bool = False
    is_shared: bool = False
    is_pinned: bool = False
    is_inference: bool = False
    is_contiguous: bool = True
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

    @property
    def _is_pending(self) -> bool:
        is_awaited = self.kind is kinds.PENDING and self.detail == kinds.WRITING
        return is_awaited or (self.inner is not None and self.inner._is_pending)

    @property
    def _has_part(self) -> bool:
        """Whether a DTensor has a part with values here, and other parts on other ranks."""
        if self.data_state != "remote" or self.shard is None or self.shard.pending or self._is_pending:
            return False
        return self.inner is not None and self.inner.data_state == "available" and self.inner.numel > 0

    @property
    def _numel_elsewhere(self) -> int:
        return self.numel - self.inner.numel if self.data_state == "remote" and self.inner is not None else 0

    @property
    def _nbytes_here(self) -> int:
        """Bytes of indices and values that this rank stores."""
        return self._held_nbytes - self._numel_elsewhere * self.itemsize

    @property
    def _array_shape(self) -> tuple[int, ...]:
        """The shape of the array: that of the tensor, or longer where one element packs several values."""
        return self.shape if self.dtype is not FLOAT4 else (*self.shape[:-1], 2 * (self.shape or (1,))[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of all elements: `numel * itemsize`."""
        return self.numel * self.itemsize

    @property
    def _held_nbytes(self) -> int:
        """Bytes of stored indices and values; expanded elements count once."""
        if self._part_nbytes is not None:
            return self._part_nbytes
        # The part on this rank says nothing of the layout on the others.
        if self.stride is None or not self._is_expanded or self.data_state == "remote":
            return self.nbytes
        sizes = (size if step else min(size, 1) for size, step in zip(self.shape, self.stride, strict=True))
        return math.prod(sizes) * self.itemsize

    @property
    def _is_gathered(self) -> bool:
        return self._is_unsharded or (self.inner is not None and self.inner._is_gathered)

    @property
    def _is_expanded(self) -> bool:
        if self.stride is None or 0 not in self.stride:
            return False
        return any(step == 0 and size > 1 for size, step in zip(self.shape, self.stride, strict=True))

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        return "\n".join(f"{field.name.lstrip('_')}: {getattr(self, field.name)}" for field in dataclasses.fields(self))

"""Values that lie in a file in one piece, as they are stored or decoded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensornp.core.memory.extents import Extent as Laid
from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.core.tensor.strides import MAX_NDIM, contiguous, num_reached, order_of
from tensornp.errors import TooLargeError
from tensornp.models.entries.entry import WeightEntry, shape_text
from tensornp.models.entries.source import ReadPlan, StoredSource, native, tensor_of
from tensornp.models.entries.take import VALUES, Array, Codec, Ranges, Reads, Shape, taken_by
from tensornp.models.files.source_file import Extent, ListedFile, Reader

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats

_MAX_INNER = 6
"""Tensors of which another consists that are told."""
_MAX_REPEATED = 2**32
"""Elements of a crafted view, in which stored ones repeat, that are read at most."""


@dataclass(frozen=True, slots=True)
class FileSource(StoredSource):
    """Elements from byte `offset` of a file on, `strides` elements apart, or in order without gaps.

    A `codec` decodes them. Their bytes may be in the other order than on this machine (`is_swapped`).
    """

    shape: Shape
    dtype: str
    file: ListedFile
    offset: int
    strides: Shape | None = None
    is_swapped: bool = False
    codec: Codec | None = None

    @property
    def location(self) -> str:
        return self.file.path

    @property
    def dtype_of_values(self) -> str:
        return VALUES if self.codec is not None else self.dtype

    @property
    def extents(self) -> tuple[Extent, ...]:
        return (self.file.extent(self.offset, self._reach * self.item.itemsize),)

    @property
    def lies(self) -> Laid | None:
        """The place of the elements; None if they are compressed, or in blocks."""
        if self.file.is_packed or self.dtype not in KNOWN:
            return None
        size = stored_dtype(self.dtype).itemsize
        # No address is 0, and an offset may be.
        strides = tuple(step * size for step in self._steps)
        return Laid(self.file.path, self.offset + 1, self.shape, strides, size, f"{self.dtype} {hash(self.codec)}")

    @property
    def identity(self) -> object:
        if self.file.is_packed or self.dtype not in KNOWN or 0 in self.shape:
            return id(self)
        # The path, since comparing files takes long.
        return self.file.path, self.offset, self.shape, self.strides, self.dtype, self.codec

    @property
    def codes(self) -> FileSource | None:
        return replace(self, codec=None) if self.dtype in KNOWN and self.codec is not None else None

    @property
    def item(self) -> np.dtype[Any]:
        """The NumPy dtype of an element, or of a block of codes."""
        item = np.dtype((np.void, self._block[1])) if self._block else stored_dtype(self.dtype)
        return item.newbyteorder("S") if self.is_swapped else item

    @property
    def _block(self) -> tuple[int, int] | None:
        packing: tuple[int, int] | None = self.codec.packing if self.codec is not None else None
        return packing

    @property
    def _stored_shape(self) -> Shape:
        return (*self.shape[:-1], self.shape[-1] // self._block[0]) if self._block else self.shape

    @property
    def _steps(self) -> Shape:
        return self.strides if self.strides is not None else contiguous(self._stored_shape)

    @property
    def _reach(self) -> int:
        return 0 if 0 in self._stored_shape else num_reached(self._stored_shape, self._steps)

    @property
    def is_shared_out(self) -> bool:
        return self.order is not None and not self.file.is_packed

    @property
    def order(self) -> tuple[int, ...] | None:
        return tuple(range(len(self.shape))) if self.strides is None else order_of(self.shape, self.strides)

    def plan(self, index: Any) -> ReadPlan:
        taken = taken_by(index, self.shape)
        if self.file.is_packed:
            return ReadPlan(self.extents[0].nbytes, 1, taken.shape)
        sizes = [nbytes for _, nbytes, _ in self._reads(taken.ranges).runs()]
        return ReadPlan(sum(sizes), len(sizes), taken.shape)

    def values(self) -> Any:
        """Return a reader of some values at a time; a tensor of a compressed array."""
        if self.file.is_packed:
            return tensor_of(native(self.read(...)), self.dtype_of_values)
        return replace(
            StoredSource.values(self),
            quantized=self.codec.quantized if self.codec is not None else "",
            codes=self.codes.values() if self.codes is not None else None,
            scheme=self.codec,
        )

    def stats(self) -> TensorStats:
        """Return the statistics of all values; TooLargeError if a crafted view would take hours."""
        numel, reach = math.prod(self.shape), self._reach
        if self.order is None and numel > max(reach, _MAX_REPEATED):
            said = f"the statistics would read {numel:,} elements, and {reach:,} are stored"
            raise TooLargeError(f"{said}; take its values by an index", numel * self.item.itemsize)
        return StoredSource.stats(self)

    def reading(self) -> AbstractContextManager[Reader]:
        return self.file.opened()

    def elements(self, opened: Reader, ranges: Ranges) -> Array:
        bits = self._reads(ranges).bring(lambda target, at: opened.read_into(target, self.offset + at), self.item)
        # Any byte but 0 is True.
        made = np.asarray(bits.view(np.uint8) != 0) if bits.dtype.kind == "b" else bits
        return made if self.codec is None else self.codec(made, ranges)

    def row_reader(self, opened: Reader) -> Callable[[int, int], Array]:
        if self.order is None or self.codec is not None:
            return StoredSource.row_reader(self, opened)

        def read(first: int, count: int) -> Array:
            made = np.empty(count, self.item)
            opened.read_into(made.view(np.uint8), self.offset + first * made.itemsize)
            return native(made.view(np.uint8) != 0 if made.dtype.kind == "b" else made)

        return read

    def _reads(self, ranges: Ranges) -> Reads:
        """Return the reads of the elements in some ranges, or of their blocks."""
        if self._block:
            last, size = ranges[-1], self._block[0]
            blocks = range(min(last) // size, max(last) // size + 1) if last else range(0)
            ranges = (*ranges[:-1], blocks)
        itemsize = self.item.itemsize
        return Reads(ranges, tuple(step * itemsize for step in self._steps), itemsize)

    def numbers(self, index: Any) -> Array:
        """Return the values at an index as numbers, for a codec."""
        from tensornp.core.values.blocks import numbers_of

        with self.file.opened() as there:
            bits = self.elements(there, taken_by(index, self.shape).ranges)
        return numbers_of(native(bits), self.dtype_of_values)


def weight_in(
    source: FileSource, name: str, code: str, *, kind: str = "tensor", nbytes: int | None = None, note: str = "",
    problem: str = "",
) -> WeightEntry:  # fmt: skip
    """Return a weight in a file; `nbytes` defaults to that of the stored elements."""
    shape, dtype, strides = source.shape, source.dtype, source.strides
    if nbytes is None:
        sizes = shape if strides is None else (n if step else min(n, 1) for n, step in zip(shape, strides, strict=True))
        nbytes = math.prod(sizes) * stored_dtype(dtype).itemsize if dtype in KNOWN else 0
    problem = problem or why_no_array(shape)
    return WeightEntry(name, kind, shape, dtype, nbytes, source, code, note, problem)


def why_no_array(shape: tuple[int, ...]) -> str:
    """Return why NumPy has no such shape, or ``""``."""
    return f"it has {len(shape):,} dimensions, and NumPy has {MAX_NDIM} at most" if len(shape) > MAX_NDIM else ""


def inner_text(class_name: str, inner: Sequence[tuple[str, str, tuple[int, ...] | None]]) -> str:
    """Return a class with its tensors: ``Int8Tensor: qdata int8 (128, 128), …``."""
    parts = [f"{name} {dtype} {shape_text(shape, '')}".rstrip() for name, dtype, shape in inner[:_MAX_INNER]]
    more = ["…"] if len(inner) > _MAX_INNER else []
    return f"{class_name}: {', '.join(parts + more)}" if parts else class_name

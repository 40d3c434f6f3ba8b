"""Values that lie in a file in one piece, as they are stored or decoded."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tensornp.core.memory.extents import Extent as Laid
from tensornp.core.tensor.dtypes import KNOWN, SINCE, stored_dtype
from tensornp.core.tensor.strides import MAX_NDIM, contiguous, num_reached, num_stored, order_of
from tensornp.errors import TooLargeError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.stored import ReadPlan, StoredSource, native, tensor_of
from tensornp.models.files.source_file import Extent, ListedFile, Reader
from tensornp.models.reading.codec import Codec
from tensornp.models.reading.take import Array, Ranges, Reads, Shape, boxes_of_row, taken_by

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats

_MAX_WHOLE_NBYTES = 2**22
"""ListedFile of a compressed array that are inflated at once."""


@dataclass(frozen=True, slots=True)
class FileSource(StoredSource):
    """Elements that lie `strides` elements apart, from `offset` on.

    Attributes
    ----------
    shape : tuple of int
        The shape of the values.
    dtype : str
        The dtype of the elements as they are stored.
    file : ListedFile
        The file.
    offset : int
        The first byte.
    strides : tuple of int or None
        In elements; None if they lie in order without gaps.
    is_swapped : bool
        Whether their bytes are in the other order than on this machine.
    codecs : tuple of Codec
        Functions that decode the elements, one after the other.
    """

    shape: Shape
    dtype: str
    file: ListedFile
    offset: int
    strides: Shape | None = None
    is_swapped: bool = False
    codecs: tuple[Codec, ...] = ()

    @property
    def location(self) -> str:
        """The path of the file."""
        return self.file.path

    @property
    def dtype_of_values(self) -> str:
        """The dtype of the decoded values."""
        return str(self.codecs[-1].dtype) if self.codecs else self.dtype

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The bytes from the first element to the last."""
        return (self.file.extent(self.offset, self._nbytes),)

    @property
    def fills_extents(self) -> bool:
        """Whether nothing is compressed."""
        return not self.file.is_stream

    @property
    def lies(self) -> Laid | None:
        """The extent of the elements; None if they are compressed, or in blocks."""
        size = self.itemsize
        if not size:
            return None
        # No address is 0, and an offset may be.
        strides = tuple(step * size for step in self._steps)
        return Laid(self.file.path, self.offset + 1, self.shape, strides, size, f"{self.dtype} {hash(self.codecs)}")

    @property
    def itemsize(self) -> int:
        """ListedFile of an element; 0 if they are compressed, or in blocks."""
        return 0 if self.file.is_stream or self.dtype not in KNOWN else stored_dtype(self.dtype).itemsize

    @property
    def identity(self) -> object:
        """The elements, which several names may have."""
        if not self.itemsize or 0 in self.shape:
            return id(self)
        # The path, since comparing files takes long.
        return self.file.path, self.offset, self.shape, self.strides, self.dtype, self.codecs

    @property
    def codes(self) -> FileSource | None:
        """The codes as they are stored."""
        has_codes = self.dtype in KNOWN and self.dtype_of_values != self.dtype
        return replace(self, codecs=()) if has_codes else None

    @property
    def item(self) -> np.dtype[Any]:
        """The NumPy dtype of an element, or of a block of codes."""
        item = np.dtype((np.void, self._block[1])) if self._block else stored_dtype(self.dtype)
        return item.newbyteorder("S") if self.is_swapped else item

    @property
    def _block(self) -> tuple[int, int] | None:
        packing: tuple[int, int] | None = self.codecs[0].packing if self.codecs else None
        return packing

    @property
    def _stored_shape(self) -> Shape:
        return (*self.shape[:-1], self.shape[-1] // self._block[0]) if self._block else self.shape

    @property
    def _steps(self) -> Shape:
        return self.strides if self.strides is not None else contiguous(self._stored_shape)

    @property
    def _nbytes(self) -> int:
        return self._reach * self.item.itemsize

    @property
    def _reach(self) -> int:
        """Elements from the first to the last."""
        return 0 if 0 in self._stored_shape else num_reached(self._stored_shape, self._steps)

    @property
    def is_shared_out(self) -> bool:
        """Return whether tasks can begin at any element: no gaps, no compression."""
        return self.order is not None and not self.file.is_stream

    @property
    def order(self) -> tuple[int, ...] | None:
        """The dimensions from the widest stride to the narrowest; None if there are gaps."""
        return tuple(range(len(self.shape))) if self.strides is None else order_of(self.shape, self.strides)

    def plan(self, index: Any) -> ReadPlan:
        """Return the reads of `to_numpy` and its codecs, all of a compressed array."""
        taken = taken_by(index, self.shape)
        if self.file.is_stream:
            return ReadPlan(self.extents[0].nbytes, 1, taken.shape)
        own = self._reads(taken.ranges)
        plans = [source.plan(at) for codec in self.codecs for source, at in codec.beside(taken.ranges)]
        nbytes, num = own.nbytes + sum(one.nbytes_read for one in plans), own.num + sum(one.num_reads for one in plans)
        return ReadPlan(nbytes, num, taken.shape)

    def values(self) -> Any:
        """Return a reader of some values at a time; a tensor of a small compressed array."""
        if self.file.is_stream and self._nbytes <= _MAX_WHOLE_NBYTES:
            return tensor_of(native(self.read(...)), self.dtype_of_values)
        return replace(
            StoredSource.values(self),
            quantized=self.codecs[-1].quantized if self.codecs else "",
            codes=self.codes.values() if self.codes is not None else None,
            scheme=self.codecs,
            is_sequential=self.file.is_stream,
            max_stored=num_stored(self.shape, self.strides) if self.strides is not None else None,
        )

    def stats(self) -> TensorStats:
        """Return the statistics of all values; TooLargeError if this would take hours."""
        from tensornp.core.values.sources import MAX_REPEATED

        numel, reach = math.prod(self.shape), self._reach
        if self.order is None and numel > max(reach, MAX_REPEATED):
            said = f"the statistics would read {numel:,} elements, and {reach:,} are stored"
            raise TooLargeError(f"{said}; take its values by an index", numel * self.item.itemsize)
        return StoredSource.stats(self)

    def reading(self) -> AbstractContextManager[Reader]:
        """Open the file for some reads, or to read all."""
        return self.file.opened()

    def elements(self, opened: Reader, ranges: Ranges) -> Array:
        """Return the decoded elements in some ranges."""
        bits = self._reads(ranges).bring(lambda target, at: opened.read_into(target, self.offset + at), self.item)
        return self._decoded(bits, ranges)

    def row(self, opened: Reader, first: int, count: int) -> Array:
        """Return `count` elements in the order of the file; by index if there are gaps."""
        if self.order is not None and all(codec.is_elementwise for codec in self.codecs):
            made = np.empty(count, self.item)
            opened.read_into(made.view(np.uint8), self.offset + first * made.itemsize)
            return self._decoded(made, ())
        order = self.order or tuple(range(len(self.shape)))
        parts = []
        for box in boxes_of_row(first, count, tuple(self.shape[axis] for axis in order)):
            ranges = tuple(box[order.index(axis)] for axis in range(len(order)))
            parts.append(self.elements(opened, ranges).transpose(order).reshape(-1))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def reader_in_order(self) -> Callable[[int, int], Array]:
        """Return a reader of elements in the order of their indices."""
        if self.strides is None:
            return StoredSource.reader_in_order(self)
        from tensornp.core.values.stored import flat_from_boxes

        return flat_from_boxes(self.shape, lambda box: native(self.read(box)))

    def _reads(self, ranges: Ranges) -> Reads:
        """Return the reads of the elements in some ranges, or of their blocks."""
        if self._block:
            last, size = ranges[-1], self._block[0]
            blocks = range(min(last) // size, max(last) // size + 1) if last else range(0)
            ranges = (*ranges[:-1], blocks)
        itemsize = self.item.itemsize
        return Reads(ranges, tuple(step * itemsize for step in self._steps), itemsize)

    def _decoded(self, bits: Array, ranges: Ranges) -> Array:
        """Return the meaning of stored elements; any byte but 0 is True."""
        made = np.asarray(bits.view(np.uint8) != 0) if bits.dtype.kind == "b" else bits
        for codec in self.codecs:
            beside = codec.beside(ranges) if made.size else []
            made = codec(made, ranges, *[source.numbers(index) for source, index in beside])
        return made

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
    problem = problem or why_no_array(shape, dtype)
    return WeightEntry(name, kind, shape, dtype, nbytes, source, code, note, problem)


def why_no_array(shape: tuple[int, ...], dtype: str) -> str:
    """Return why NumPy or torch has no such shape or dtype, or ``""``."""
    if len(shape) > MAX_NDIM:
        return f"it has {len(shape):,} dimensions, and NumPy has {MAX_NDIM} at most"
    return _why_unknown(dtype) if dtype in SINCE else ""


@cache
def _why_unknown(dtype: str) -> str:
    """Return why this torch has no such dtype, without importing torch."""
    from importlib.metadata import PackageNotFoundError, version

    torch = sys.modules.get("torch")
    try:
        told: str = version("torch") if torch is None else torch.__version__
    except PackageNotFoundError:
        return ""
    is_there = tuple(map(int, told.split(".")[:2])) >= SINCE[dtype] if torch is None else hasattr(torch, dtype)
    # A wheel and its package may name another build.
    return "" if is_there else f"torch {told.partition('+')[0]} has no {dtype}; install a newer one"

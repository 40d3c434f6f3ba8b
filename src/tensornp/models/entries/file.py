"""A weight that lies in a file, in one piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np
import torch

from tensornp.core.convert.plan import MAX_NDIM
from tensornp.core.memory.strided import order_of
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.tensor.indexing import is_in_order, num_reached
from tensornp.core.values.reading.blocks import ReadPart
from tensornp.core.values.reading.decode import stored_dtype
from tensornp.core.values.reading.stored import flat_from_boxes
from tensornp.core.values.reading.supply import MAX_REPEATED, Supply
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import ChangedFileError, TooLargeError
from tensornp.models.entries.entry import Array, Extent
from tensornp.models.entries.stored import ReadPlan, StoredEntry, native
from tensornp.models.files.source_file import Reader, Source, SourceFile
from tensornp.models.names.quoted import shown_name
from tensornp.models.reading.lazy_signs import AS_STORED, LazyBits, applied
from tensornp.models.reading.selection import Selection, select

MIN_GIVEN_BACK = 2**30
"""Bytes of a file from which on a scan leaves nothing of it in the cache; a smaller one may soon be loaded."""

_UNKNOWN_HERE = frozenset(dtype for dtype in KNOWN if not hasattr(torch, dtype))


class FileEntry(StoredEntry):
    """Elements that lie `strides` elements apart, from `offset` on; without these, in the order of their indices.

    With `is_swapped`, the bytes of each are in the order that this machine does not have; `lazy` are signs to apply.
    """

    __slots__ = ("_file", "_is_swapped", "_lazy", "_offset", "_strides")

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        code: str,
        file: Source,
        offset: int,
        strides: tuple[int, ...] | None = None,
        *,
        is_swapped: bool = False,
        lazy: LazyBits = AS_STORED,
    ) -> None:
        super().__init__(name, "tensor", shape, dtype, 0, code)
        self._file, self._offset, self._is_swapped, self._lazy = file, offset, is_swapped, lazy
        self._strides = None if strides is None or is_in_order(shape, strides) else strides
        self.problem = why_no_array(shape, dtype)
        if dtype in KNOWN:
            sizes = (
                shape if strides is None else (n if step else min(n, 1) for n, step in zip(shape, strides, strict=True))
            )
            self.nbytes = math.prod(sizes) * stored_dtype(dtype).itemsize

    def _begin_as(self, other: FileEntry) -> None:
        """Begin as the same elements of the same file, which mean something else here."""
        assert other.shape is not None
        FileEntry.__init__(
            self, other.name, other.shape, other.dtype, other.code, other._file, other._offset, other._strides,
            is_swapped=other._is_swapped, lazy=other._lazy,
        )  # fmt: skip
        self.kind, self.nbytes, self.problem = other.kind, other.nbytes, other.problem

    @property
    def location(self) -> str:
        """The path of its file."""
        return self._file.path

    @property
    def lazy(self) -> LazyBits:
        """The signs that are applied to what is read."""
        return self._lazy

    @property
    def place(self) -> tuple[str, int]:
        """The path of its file, and at which byte it begins."""
        return self._file.path, self._offset

    @property
    def strides(self) -> tuple[int, ...] | None:
        """How many elements lie between two neighbours in each dimension; None where they lie in order without gaps."""
        return self._strides

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where its bytes lie; of one with gaps, from the first to the last; nowhere of one that is not read."""
        if self.problem:
            return ()
        nbytes = self.nbytes
        if self._strides is not None and self.numel:
            assert self.shape is not None
            nbytes = num_reached(self.shape, self._strides) * self.bits_dtype.itemsize
        return (Extent(self._file.path, self._offset, nbytes),)

    @property
    def values_key(self) -> tuple[Any, ...]:
        """What is equal for the same values: where they lie, and how they are meant."""
        place = self._file, self._offset, self._strides
        return type(self), self.shape, self.dtype, place, self._is_swapped, self._lazy

    @property
    def meaning(self) -> Hashable:
        """What is equal where equal bytes are equal values; None where it is not told which byte is whose."""
        return (self.dtype, self._lazy) if type(self) is FileEntry and self.dtype in KNOWN else None

    @property
    def is_shared_out(self) -> bool:
        """Whether its elements lie without gaps."""
        return self._is_dense

    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read; BadRequestError for an index that is none, or out of bounds."""
        self.check_readable()
        selection = self.select(index)
        runs = [run.nbytes for run in selection.runs()]
        return ReadPlan(sum(runs), len(runs), selection.result_shape)

    def stats(self) -> TensorStats:
        """Return the statistics of all values, read block by block; what several indices show is read once.

        Raises
        ------
        TooLargeError
            If the same elements would be read over and over, for hours.
        """
        self.check_readable()
        if not self._is_dense:
            self._check_endless()
        return super().stats()

    def select(self, index: Any) -> Selection:
        """Return what an index takes of its elements, as they lie."""
        assert self.shape is not None
        return select(index, self.shape, self.bits_dtype.itemsize, self._strides)

    @property
    def bits_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype by which its elements are read."""
        bits = stored_dtype(self.dtype)
        return bits.newbyteorder("S") if self._is_swapped else bits

    @property
    def _is_dense(self) -> bool:
        """Whether each byte from the first to the last belongs to one element, in whatever order they lie."""
        assert self.shape is not None
        return self._strides is None or is_dense(self.shape, self._strides)

    def give_back(self) -> None:
        """Let the system drop what was read of it from its cache, if the file is so large that it crowds others out."""
        if isinstance(self._file, SourceFile) and self._file.nbytes >= MIN_GIVEN_BACK:
            with suppress(ChangedFileError), self._file.opened() as there:
                there.give_back(self._offset, self.nbytes)

    def _opened(self) -> AbstractContextManager[Reader]:
        return self._file.opened()

    def _meant(self, bits: Array) -> Array:
        made = super()._meant(bits)
        return made if self._lazy == AS_STORED else applied(made, self.dtype, self._lazy)

    def _supply(self, opened: Any) -> Supply:
        if self._is_dense:
            return super()._supply(opened)
        shape, strides, times = self._laid_once()

        def read(box: tuple[slice, ...]) -> Array:
            selection = select(box, shape, self.bits_dtype.itemsize, strides)
            return self._meant(self._bits_at(opened, selection))

        name = self.dtype_of_values
        part = ReadPart(flat_from_boxes(shape, read), shape, name, times=times)
        assert self.shape is not None
        return Supply((part,), name, self.shape)

    def _order(self) -> tuple[int, ...] | None:
        assert self.shape is not None
        return super()._order() if self._strides is None else order_of(self.shape, self._strides)

    def _laid_once(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Return by which shape and strides its values are read where there are gaps, and how often each is meant."""
        assert self.shape is not None and self._strides is not None
        return each_once(self.shape, self._strides)

    def _check_endless(self) -> None:
        shape, strides, _ = self._laid_once()
        numel, reach = math.prod(shape), num_reached(shape, strides)
        if numel > max(reach, MAX_REPEATED):
            raise TooLargeError(
                f"the statistics of {shown_name(self.name)} would read {numel:,} elements of which {reach:,} are "
                "stored; take its values by an index",
                numel * self.bits_dtype.itemsize,
            )

    def _bits_at(self, opened: Reader, selection: Selection) -> Array:
        return selection.read(lambda target, first: opened.read_into(target, self._offset + first), self.bits_dtype)

    def _flat(self, opened: Reader, first: int, count: int) -> Array:
        made = np.empty(count, self.bits_dtype)
        opened.read_into(made.view(np.uint8), self._offset + first * made.itemsize)
        return made

    def _reader_in_order(self) -> Callable[[int, int], Array]:
        if self._strides is None:
            return super()._reader_in_order()
        assert self.shape is not None
        return flat_from_boxes(self.shape, lambda box: native(self._read(box)))


def why_no_array(shape: tuple[int, ...], dtype: str) -> str:
    """Return why no array can have this shape and dtype: this NumPy or this torch lacks it; empty where both do not."""
    if len(shape) > MAX_NDIM:
        return f"it has {len(shape):,} dimensions, and NumPy has {MAX_NDIM} at most"
    if dtype in _UNKNOWN_HERE:
        return f"torch {torch.__version__} has no {dtype}; install a newer one"
    return ""


def each_once(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return a shape and strides that show the same elements in the order of the file, and how often each is meant.

    As tensors in memory are read (`Strided.in_memory_order`): the same blocks give the same bits.
    """
    times = math.prod(n for n, step in zip(shape, strides, strict=True) if not step)
    kept = sorted(((step, n) for n, step in zip(shape, strides, strict=True) if n != 1 and step), reverse=True)
    merged: list[tuple[int, int]] = []
    for step, n in kept:
        if merged and merged[-1][0] == n * step:
            merged[-1] = step, merged[-1][1] * n
        else:
            merged.append((step, n))
    return tuple(n for _, n in merged), tuple(step for step, _ in merged), times


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether the elements lie without gaps, and each once, in some order."""
    steps = sorted(((step, n) for n, step in zip(shape, strides, strict=True) if n > 1), reverse=True)
    return is_in_order(tuple(n for _, n in steps), tuple(step for step, _ in steps))

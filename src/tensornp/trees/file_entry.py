"""A weight that lies in a file, in one piece."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.decode import stored_dtype
from tensornp.core.values.scan import stats
from tensornp.core.values.stats import TensorStats
from tensornp.core.values.stored import flat_from_boxes
from tensornp.trees.entry import Array, Extent
from tensornp.trees.selection import Selection, contiguous, select
from tensornp.trees.source_file import Reader, Source
from tensornp.trees.stored_entry import ReadPlan, StoredEntry, native


class FileEntry(StoredEntry):
    """Elements that lie `strides` elements apart, from `offset` on; without these, in the order of their indices.

    With `is_swapped`, the bytes of each are in the order that this machine does not have.
    """

    __slots__ = ("_file", "_is_swapped", "_offset", "_strides")

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
    ) -> None:
        super().__init__(name, "tensor", shape, dtype, 0, code)
        self._file, self._offset, self._is_swapped = file, offset, is_swapped
        self._strides = None if strides is None or is_contiguous(shape, strides) else strides
        self.problem = missing_dtype(dtype)
        if dtype in KNOWN:
            steps = strides if strides is not None else (1,) * len(shape)
            stored = math.prod(n if step else min(n, 1) for n, step in zip(shape, steps, strict=True))
            self.nbytes = stored * stored_dtype(dtype).itemsize

    def _begin_as(self, other: FileEntry) -> None:
        """Begin as the same elements of the same file, which mean something else here."""
        assert other.shape is not None
        FileEntry.__init__(
            self, other.name, other.shape, other.dtype, other.code, other._file, other._offset, other._strides,
            is_swapped=other._is_swapped,
        )  # fmt: skip
        self.kind, self.nbytes, self.problem = other.kind, other.nbytes, other.problem

    @property
    def location(self) -> str:
        """The path of its file."""
        return self._file.path

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where its bytes lie; of one with gaps, from the first to the last."""
        nbytes = self.nbytes
        if self._strides is not None and self.numel:
            assert self.shape is not None
            last = sum((n - 1) * step for n, step in zip(self.shape, self._strides, strict=True))
            nbytes = (last + 1) * self.bits_dtype.itemsize
        return (Extent(self._file.path, self._offset, nbytes),)

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
        """Return the statistics of all values, read block by block; of one with gaps, by boxes."""
        return super().stats() if self._is_dense else stats(self.values())

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

    def _opened(self) -> AbstractContextManager[Reader]:
        return self._file.opened()

    def _bits_at(self, opened: Reader, selection: Selection) -> Array:
        return selection.read(lambda target, first: opened.read_into(target, self._offset + first), self.bits_dtype)

    def _flat(self, opened: Reader, first: int, count: int) -> Array:
        made = np.empty(count, self.bits_dtype)
        opened.read_into(made.view(np.uint8), self._offset + first * made.itemsize)
        return made

    def _in_order(self, first: int, count: int) -> Array:
        if self._strides is None:
            return super()._in_order(first, count)
        assert self.shape is not None
        return flat_from_boxes(self.shape, lambda box: native(self._read(box)))(first, count)


def missing_dtype(dtype: str) -> str:
    """Return why values of a known dtype are not read: this torch does not have it; empty where it does."""
    if dtype in KNOWN and not hasattr(torch, dtype):
        return f"torch {torch.__version__} has no {dtype}; install a newer one"
    return ""


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether the elements lie in the order of their indices, without gaps."""
    steps = zip(shape, strides, contiguous(shape), strict=True)
    return 0 in shape or all(step == wanted for n, step, wanted in steps if n > 1)


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether the elements lie without gaps, and each once, in some order."""
    steps = sorted(((step, n) for n, step in zip(shape, strides, strict=True) if n > 1), reverse=True)
    return is_contiguous(tuple(n for _, n in steps), tuple(step for step, _ in steps))

"""A weight that lies in a file, in one piece."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.decode import stored_dtype
from tensornp.core.values.scan import stats
from tensornp.core.values.stats import TensorStats
from tensornp.trees.entry import Array, Extent
from tensornp.trees.selection import Selection, contiguous, select
from tensornp.trees.source_file import OpenFile, SourceFile
from tensornp.trees.stored_entry import ReadPlan, StoredEntry


class FileEntry(StoredEntry):
    """Elements that lie `strides` elements apart, from `offset` on; without these, in the order of their indices."""

    __slots__ = ("_file", "_offset", "_strides")

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        code: str,
        file: SourceFile,
        offset: int,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(name, "tensor", shape, dtype, 0, code)
        self._file, self._offset = file, offset
        self._strides = None if strides is None or is_contiguous(shape, strides) else strides
        self.problem = missing_dtype(dtype)
        if dtype in KNOWN:
            steps = strides if strides is not None else (1,) * len(shape)
            stored = math.prod(n if step else min(n, 1) for n, step in zip(shape, steps, strict=True))
            self.nbytes = stored * stored_dtype(dtype).itemsize

    @property
    def location(self) -> str:
        """The path of its file."""
        return self._file.path

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where its bytes lie; of one with gaps, from the first to the last."""
        runs = list(self.select(...).runs()) if self._strides is not None else []
        nbytes = max((run.offset + run.nbytes for run in runs), default=0) if runs else self.nbytes
        return (Extent(self._file.path, self._offset, nbytes),)

    @property
    def is_shared_out(self) -> bool:
        """Whether its elements lie in the order of their indices."""
        return self._strides is None

    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read; BadRequestError for an index that is none, or out of bounds."""
        self.check_readable()
        selection = self.select(index)
        runs = [run.nbytes for run in selection.runs()]
        return ReadPlan(sum(runs), len(runs), selection.result_shape)

    def stats(self) -> TensorStats:
        """Return the statistics of all values, read block by block; of one with gaps, all at once."""
        return super().stats() if self._strides is None else stats(self.to_numpy())

    @contextmanager
    def opened(self) -> Iterator[_FileReader]:
        """Open its file for some reads; ChangedFileError if it is not as it was listed."""
        with self._file.opened() as there:
            yield _FileReader(there, self._offset, self.bits_dtype)

    def select(self, index: Any) -> Selection:
        """Return what an index takes of its elements, as they lie."""
        assert self.shape is not None
        return select(index, self.shape, self.bits_dtype.itemsize, self._strides)


class _FileReader(NamedTuple):
    """Reads elements that lie from an offset on."""

    there: OpenFile
    offset: int
    dtype: np.dtype[Any]

    def bits(self, selection: Selection) -> Array:
        return selection.read(lambda target, first: self.there.read_into(target, self.offset + first), self.dtype)

    def flat(self, first: int, count: int) -> Array:
        made = np.empty(count, self.dtype)
        self.there.read_into(made.view(np.uint8), self.offset + first * self.dtype.itemsize)
        return made


def missing_dtype(dtype: str) -> str:
    """Return why values of a known dtype are not read: this torch does not have it; empty where it does."""
    if dtype in KNOWN and not hasattr(torch, dtype):
        return f"torch {torch.__version__} has no {dtype}; install a newer one"
    return ""


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether the elements lie in the order of their indices, without gaps."""
    steps = zip(shape, strides, contiguous(shape), strict=True)
    return 0 in shape or all(step == wanted for n, step, wanted in steps if n > 1)

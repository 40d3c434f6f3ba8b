"""Statistics of many tensors in turn: three reads each, on its own device, without a wait.

What `on_device` counts for one card, masks and all, is far too dear for each tensor of a training. Of a small one on
the CPU even three reads cost more than a copy does: that is put aside, and many of them are read at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.convert.to_numpy import array_of_copy

NUM_SAMPLED = 256
"""Elements of a sample."""
_NUM_ROWS, _MOST_ROWS = 16, 256
"""Rows of the first table of a kind, and at most: the next one has twice as many, since each cell is a view."""
_NUM_SAMPLES = 16
_MOST_SMALL, _MOST_ASIDE, _OF_A_COPY = 4096, 2**15, 256
"""Elements of a small tensor, and of all that are put aside: each copy takes as much memory as some hundred do."""
_LOST_OF_A_SQUARE, _OF_SQUARES = 2.0**-150, 2e-3
"""What the square of a float32 near 0 may lose, and which part of all squares is too much to lose."""
_WIDE = {torch.float64: torch.float64, torch.complex128: torch.float64}
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class Row(NamedTuple):
    """Statistics of one tensor; `min` and `max` are NaN if an element is.

    `sum` and `norm` are NaN where the extremes alone were taken, the norm also where squares were so small that it is
    not known in three digits.
    """

    min: float
    max: float
    sum: float
    norm: float


class RowTable:
    """Figures and samples of tensors, by the number that each was given.

    Nothing is read before the end, so that no device is waited for: 16 bytes a tensor stay on it, 1 KiB a sample.
    `add` and `sample` are called `outside_modes`, with a tensor whose values can be read, and that is not complex32.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[torch.device, torch.dtype], _Chunk] = {}
        self._open_samples: dict[tuple[torch.device, torch.dtype], _Samples] = {}
        self._small = _Small()
        self._places: list[tuple[_Chunk | _Small, int]] = []
        self._extremes_alone: set[int] = set()
        self._samples: list[tuple[_Samples, int, int] | np.ndarray[Any, Any]] = []

    def add(self, tensor: torch.Tensor, *, has_sums: bool = True) -> int:
        """Read the statistics of a strided tensor with elements; return its number."""
        if tensor.dtype is torch.float32 and tensor.is_cpu and tensor.numel() <= _MOST_SMALL:
            return self._placed(self._small, self._small.put_aside(tensor), has_sums)
        dtype = tensor.dtype
        if dtype not in _FLOATS:
            tensor, dtype = _comparable(tensor)
        key = tensor.device, dtype
        chunk = self._open.get(key)
        if chunk is None or chunk.count == len(chunk.mins):
            num_rows = _NUM_ROWS
            if chunk is not None:
                num_rows = min(2 * len(chunk.mins), _MOST_ROWS)
                chunk.close()
            chunk = self._open[key] = _Chunk(*key, num_rows)
        at = chunk.count
        chunk.count = at + 1
        chunk.numels.append(tensor.numel())
        torch.aminmax(tensor, out=(chunk.mins[at], chunk.maxs[at]))
        if has_sums:
            _take_sums(tensor, chunk, at)
        return self._placed(chunk, at, has_sums)

    def _placed(self, chunk: _Chunk | _Small, at: int, has_sums: bool) -> int:
        number = len(self._places)
        self._places.append((chunk, at))
        if not has_sums:
            self._extremes_alone.add(number)
        return number

    def has_extremes_alone(self, number: int) -> bool:
        """Return whether sum and norm of a tensor were not taken."""
        return number in self._extremes_alone

    def complete(self, number: int, tensor: torch.Tensor) -> None:
        """Read the sum and the norm of an unchanged tensor with extremes alone."""
        if number in self._extremes_alone:
            self._extremes_alone.discard(number)
            chunk, at = self._places[number]
            if isinstance(chunk, _Chunk):
                _take_sums(tensor if tensor.dtype in _FLOATS else _comparable(tensor)[0], chunk, at)

    def sample(self, tensor: torch.Tensor, number: int) -> int:
        """Take up to 256 elements of a numbered tensor; return the number of the sample."""
        chunk, at = self._places[number]
        if isinstance(chunk, _Small) and (copy := chunk.last(at)) is not None:
            self._samples.append(_thinned(copy.reshape(-1), copy.size).copy())
            return len(self._samples) - 1
        wide = _WIDE.get(tensor.dtype, torch.float32)
        taken = _spread(tensor)
        if taken.is_complex():
            taken = taken.abs()
        if tensor.is_cpu:
            self._samples.append(array_of_copy(taken.to(wide, copy=True)))
            return len(self._samples) - 1
        key = tensor.device, wide
        samples = self._open_samples.get(key)
        if samples is None or samples.count == _NUM_SAMPLES:
            if samples is not None:
                samples.rows = ()
            samples = self._open_samples[key] = _Samples(*key)
        at = samples.count
        samples.count = at + 1
        count = taken.numel()
        samples.rows[at][:count].copy_(taken)
        self._samples.append((samples, at, count))
        return len(self._samples) - 1

    def read(self) -> tuple[list[Row], list[np.ndarray[Any, Any]]]:
        """Return all figures and all samples by their numbers; waits for each device once a table."""
        figures = {chunk: chunk.read() for chunk in dict.fromkeys(chunk for chunk, _ in self._places)}
        tables = dict.fromkeys(one[0] for one in self._samples if isinstance(one, tuple))
        samples = {one: array_of_copy(one.table[: one.count].cpu()) for one in tables}
        return (
            [
                Row(figures[chunk][at][0], figures[chunk][at][1], math.nan, math.nan)
                if n in self._extremes_alone
                else Row(*figures[chunk][at])
                for n, (chunk, at) in enumerate(self._places)
            ],
            [samples[one[0]][one[1]][: one[2]] if isinstance(one, tuple) else one for one in self._samples],
        )


class _Chunk:
    """A table of figures on one device, of tensors of one dtype, and views of its cells."""

    __slots__ = ("count", "extremes", "maxs", "mins", "norms", "numels", "sums", "wide", "wides")

    def __init__(self, device: torch.device, dtype: torch.dtype, num_rows: int) -> None:
        self.count, self.numels = 0, list[int]()
        self.wide = _WIDE.get(dtype, torch.float32)
        self.extremes = torch.zeros(2, num_rows, dtype=dtype, device=device)
        self.wides = torch.zeros(2, num_rows, dtype=self.wide, device=device)
        self.mins: Sequence[torch.Tensor]
        self.maxs: Sequence[torch.Tensor]
        self.sums: Sequence[torch.Tensor]
        self.norms: Sequence[torch.Tensor]
        self.mins, self.maxs = (row.unbind() for row in self.extremes.unbind())
        self.sums, self.norms = (row.unbind() for row in self.wides.unbind())

    def close(self) -> None:
        """Release the views; each takes more memory than a row."""
        self.mins = self.maxs = self.sums = self.norms = ()

    def read(self) -> list[Any]:
        # Not every device has float64.
        both: Any = torch.cat([table[:, : self.count].cpu().to(torch.float64) for table in (self.extremes, self.wides)])
        if self.wide is torch.float32:
            mins, maxs, _, norms = both
            is_lost = torch.tensor(self.numels) * _LOST_OF_A_SQUARE > _OF_SQUARES * norms.square()
            norms[is_lost & ((mins != 0) | (maxs != 0))] = math.nan
        return list(zip(*both.tolist(), strict=True))


class _Small:
    """Figures of small tensors in one piece of memory, and copies of those that were not read yet."""

    __slots__ = ("_aside", "_num_elements", "_taken", "count")

    def __init__(self) -> None:
        self._aside: list[np.ndarray[Any, Any]] = []
        self._taken: list[np.ndarray[Any, Any]] = []
        self.count = self._num_elements = 0

    def put_aside(self, tensor: torch.Tensor) -> int:
        self._aside.append(array_of_copy(tensor.clone()))
        self._num_elements += tensor.numel() + _OF_A_COPY
        if self._num_elements > _MOST_ASIDE:
            self._take()
        self.count += 1
        return self.count - 1

    def last(self, at: int) -> np.ndarray[Any, Any] | None:
        """Return the copy of a tensor, if it is the last that was put aside, and not read yet."""
        return self._aside[-1] if self._aside and at == self.count - 1 else None

    @np.errstate(all="ignore")
    def _take(self) -> None:
        every = np.concatenate(self._aside, None)
        begins = np.cumsum([0, *(one.size for one in self._aside[:-1])])
        # Those of float32 are beyond its range before the numbers are.
        squares = np.add.reduceat(np.square(every, dtype=np.float64), begins)
        extremes = np.minimum.reduceat(every, begins), np.maximum.reduceat(every, begins)
        self._taken.append(np.stack((*extremes, np.add.reduceat(every, begins), np.sqrt(squares)), 1))
        self._aside.clear()
        self._num_elements = 0

    def read(self) -> list[Any]:
        if self._aside:
            self._take()
        return [row for some in self._taken for row in some.tolist()]


class _Samples:
    """A table of samples on one device."""

    __slots__ = ("count", "rows", "table")

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self.count = 0
        self.table = torch.zeros(_NUM_SAMPLES, NUM_SAMPLED, dtype=dtype, device=device)
        self.rows: Sequence[torch.Tensor] = self.table.unbind()


def _take_sums(tensor: torch.Tensor, chunk: _Chunk, at: int) -> None:
    total, norm = (chunk.sums[at], chunk.norms[at]) if chunk.sums else chunk.wides[:, at].unbind()
    torch.sum(tensor, (), dtype=chunk.wide, out=total)
    torch.linalg.vector_norm(tensor, dtype=chunk.wide, out=norm)


def _comparable(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
    """Return a tensor that has a least element and a norm in the place of one that has none."""
    if tensor.is_complex():
        tensor = tensor.abs()
        return tensor, tensor.dtype
    is_integer = not tensor.is_floating_point()
    wide = torch.float64 if is_integer and tensor.dtype.itemsize > 2 else torch.float32
    return tensor.to(wide), wide


def _spread(tensor: torch.Tensor) -> torch.Tensor:
    """Return elements at even distances; a view if the tensor lies in one piece."""
    if not tensor.is_contiguous():
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        tensor = tensor.permute(order)
    thinned: torch.Tensor = _thinned(tensor.reshape(-1), tensor.numel())
    return thinned


def _thinned(flat: Any, size: int) -> Any:
    step = -(-size // NUM_SAMPLED)
    return flat[::step] if step > 1 else flat

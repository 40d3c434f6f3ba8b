"""Statistics of many tensors in turn: three reads each, on its own device, without a wait.

Counting everything for one card, masks and all, is far too expensive for each tensor of a training.
"""

from __future__ import annotations

import math
from array import array

import torch

from tensornp.core.convert.to_numpy import numpy_of

NUM_SAMPLED = 256
"""Elements of a sample."""
_NUM_ROWS, _MOST_ROWS = 16, 256
"""Rows of the first table of a kind, and at most: the next one has twice as many, since each cell is a view."""
_WIDE = {torch.float64: torch.float64, torch.complex128: torch.float64}
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


Row = tuple[float, float, float, float]
"""Minimum, maximum, sum and norm of one tensor; the first two are NaN if an element is, the others if not read."""


class RowTable:
    """Statistics (16 bytes a tensor, on its device) and samples (1 KiB) of tensors, by number."""

    def __init__(self) -> None:
        self._open: dict[tuple[torch.device, torch.dtype], _Chunk] = {}
        self._places: list[tuple[_Chunk, int]] = []
        self._samples: list[torch.Tensor] = []

    def add(self, tensor: torch.Tensor, *, has_norm: bool = True, has_sum: bool = True) -> int:
        """Read the statistics of a strided tensor with elements; return its number."""
        dtype = tensor.dtype
        if dtype not in _FLOATS:
            tensor, dtype = _comparable(tensor)
        key = tensor.device, dtype
        chunk = self._open.get(key)
        if chunk is None or chunk.count == len(chunk.mins):
            num_rows = _NUM_ROWS
            if chunk is not None:
                num_rows = min(2 * len(chunk.mins), _MOST_ROWS)
                # A view takes more memory than a row.
                chunk.mins = chunk.maxs = chunk.sums = chunk.norms = ()
            chunk = self._open[key] = _Chunk(*key, num_rows)
        at = chunk.count
        chunk.count = at + 1
        torch.aminmax(tensor, out=(chunk.mins[at], chunk.maxs[at]))
        if has_norm:
            chunk.take_norm(tensor, at)
        if has_sum:
            chunk.take_sum(tensor, at)
        self._places.append((chunk, at))
        return len(self._places) - 1

    def complete(self, number: int, tensor: torch.Tensor, *, has_sum: bool) -> None:
        """Read the norm, and the sum too, of an unchanged tensor with extremes alone."""
        chunk, at = self._places[number]
        tensor = tensor if tensor.dtype in _FLOATS else _comparable(tensor)[0]
        chunk.take_norm(tensor, at)
        if has_sum:
            chunk.take_sum(tensor, at)

    def sample(self, tensor: torch.Tensor) -> int:
        """Copy up to 256 elements at even distances on the device; return the number of the sample."""
        taken = tensor.reshape(-1)[:: -(-tensor.numel() // NUM_SAMPLED)]
        if taken.is_complex():
            taken = taken.abs()
        self._samples.append(taken.to(_WIDE.get(tensor.dtype, torch.float32), copy=True))
        return len(self._samples) - 1

    def read(self) -> tuple[list[Row], list[array[float]]]:
        """Return all statistics and all samples by their numbers; waits for each device."""
        read = {chunk: chunk.read() for chunk in dict.fromkeys(chunk for chunk, _ in self._places)}
        rows = [read[chunk][at] for chunk, at in self._places]
        kinds = {torch.float64: "d"}
        return rows, [array(kinds.get(one.dtype, "f"), numpy_of(one.cpu()).tobytes()) for one in self._samples]


class _Chunk:
    """A table of statistics on one device, of tensors of one dtype, and views of its cells."""

    __slots__ = ("count", "extremes", "maxs", "mins", "norms", "sums", "wide", "wides")

    def __init__(self, device: torch.device, dtype: torch.dtype, num_rows: int) -> None:
        self.count = 0
        self.wide = _WIDE.get(dtype, torch.float32)
        self.extremes = torch.zeros(2, num_rows, dtype=dtype, device=device)
        self.wides = torch.full((2, num_rows), math.nan, dtype=self.wide, device=device)
        self.mins, self.maxs = (row.unbind() for row in self.extremes.unbind())
        self.sums, self.norms = (row.unbind() for row in self.wides.unbind())

    def take_sum(self, tensor: torch.Tensor, at: int) -> None:
        torch.sum(tensor, (), dtype=self.wide, out=self.sums[at] if self.sums else self.wides[0, at])

    def take_norm(self, tensor: torch.Tensor, at: int) -> None:
        cell = self.norms[at] if self.norms else self.wides[1, at]
        torch.linalg.vector_norm(tensor, dtype=self.wide, out=cell)

    def read(self) -> list[Row]:
        """Return the rows; not every device has float64."""
        both = torch.cat([table[:, : self.count].cpu().to(torch.float64) for table in (self.extremes, self.wides)])
        return list(zip(*both.tolist(), strict=True))


def _comparable(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
    """Return a tensor that has a least element and a norm instead of one that has none."""
    if tensor.is_complex():
        tensor = tensor.abs()
        return tensor, tensor.dtype
    is_integer = not tensor.is_floating_point()
    wide = torch.float64 if is_integer and tensor.dtype.itemsize > 2 else torch.float32
    return tensor.to(wide), wide

"""Find the tensors in arguments and results, and read statistics of their values.

Each tensor is read three times, on its own device, without a wait.
"""

from __future__ import annotations

import math
import types
from array import array
from typing import Any

import torch

from tensornp.core.convert.to_numpy import numpy_of
from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import is_tensor, own_attributes
from tensornp.core.lowlevel.quiet import plain, quietly
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.tensor import kinds
from tensornp.core.tensor.kinds import form_of
from tensornp.core.tensor.paths import key_text
from tensornp.core.tensor.strides import num_reached

STORED = "statistics of the stored elements"
_MOST_LEAVES, _MOST_LEVELS = 1000, 5
"""Values of an argument that are looked at, and levels of containers and objects."""
_PLAIN_CLASSES = frozenset((int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size))
_CODE = (type, types.ModuleType, torch.nn.Module, torch.optim.Optimizer)
_NUM_SAMPLED = 256
_NUM_ROWS, _MOST_ROWS = 16, 256
"""Rows of the first table of a kind, and at most: the next one has twice as many, since each cell is a view."""
_WIDE = {torch.float64: torch.float64, torch.complex128: torch.float64}
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
Row = tuple[float, float, float, float]
"""Minimum, maximum, sum and norm of one tensor; the first two are NaN if an element is, the others if not read."""


def tensors_in(tree: Any) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors in arguments or a result by path, also in attributes of objects such as a cache."""
    found: list[tuple[str, torch.Tensor]] = []
    waiting = [("", tree, 0)]
    for _ in range(_MOST_LEAVES):
        if not waiting:
            break
        path, one, level = waiting.pop()
        if is_tensor(one):
            found.append((path, one))
        elif type(one) not in _PLAIN_CLASSES and level < _MOST_LEVELS:
            waiting += [(path + step, child, level + 1) for step, child in reversed(_children_of(one))]
    return found


def _children_of(obj: Any) -> list[tuple[str, Any]]:
    """Return the first children of a container or an object, each with the step to it."""
    if isinstance(obj, dict):
        return [(f"[{key_text(key)}]", child) for key, child in list(dict.items(obj))[:_MOST_LEAVES]]
    if isinstance(obj, (list, tuple)):
        names = getattr(type(obj), "_fields", ())
        return [(f".{names[i]}" if i < len(names) else f"[{i}]", one) for i, one in enumerate(obj[:_MOST_LEAVES])]
    if callable(obj) or isinstance(obj, _CODE):
        return []
    try:
        return [(f".{name}", child) for name, child in dict(own_attributes(obj)).items()]
    except Exception:
        # Another thread changes it just now, or it is broken.
        return []


def readable_of(tensor: torch.Tensor) -> tuple[torch.Tensor | None, str]:
    """Return a strided tensor with the values of another, or None, and a note on them."""
    if is_ordinary(tensor):
        return _strided(tensor), ""
    form = form_of(tensor)
    if form.kind is kinds.LOCAL:
        return readable_of(tensor._local_tensor)[0], "statistics of the local shard"  # type: ignore[attr-defined]
    if form.state != "available":
        return None, f"{form.state}: not read"
    if form.kind is kinds.SPARSE:
        raw = plain(tensor)
        # Elements that are stored several times are summed.
        return _strided(stored_of(quietly(raw.coalesce) if raw.layout == torch.sparse_coo else raw)), STORED
    if form.kind not in (kinds.STRIDED, kinds.ZERO):
        return None, f"{form.kind.label or form.kind.name}: not read"
    return _strided(plain(tensor)), ""


def is_ordinary(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a dense one of torch's own class without lazy bits: most are."""
    if not is_of_torch(tensor) or tensor.dtype is torch.complex32:
        return False
    keys = torch_private.dispatch_keys(tensor).raw_repr()
    if keys not in _ORDINARY_KEYS and not tensor.is_meta:
        _ORDINARY_KEYS.add(torch_private.dispatch_keys(torch.empty(0, device=tensor.device)).raw_repr())
    return keys in _ORDINARY_KEYS


_ORDINARY_KEYS: set[int] = set()
"""Dispatch keys of dense tensors without lazy bits."""


def _strided(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return each element of a readable tensor once, in the order of its memory; None for no elements."""
    size = tensor.numel()
    if not size:
        return None
    is_row = tensor.is_contiguous()
    reach = size if is_row else num_reached(tensor.shape, tensor.stride())
    if (tensor.storage_offset() + reach) * tensor.itemsize > tensor.untyped_storage().nbytes():
        return None
    if not is_row:
        for dim, (length, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if length > 1 and step == 0:
                tensor = tensor.narrow(dim, 0, 1)
        # Torch reads a transposed matrix ten times faster in the order of its memory.
        tensor = tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))
    # Torch warns of complex32; a modulus may be beyond float16, too.
    return quietly(tensor.to, torch.complex64) if tensor.dtype is torch.complex32 else tensor


def stored_of(tensor: Any) -> torch.Tensor:
    """Return the elements that a sparse tensor stores; nested tensors are not read."""
    if tensor.is_nested or not is_of_torch(tensor):
        raise ValueError("nested, or a class of its own")
    raw = plain(tensor)
    return torch_private.stored_elements(raw)[1] if raw.layout == torch.sparse_coo else raw.values()


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
        taken = tensor.reshape(-1)[:: -(-tensor.numel() // _NUM_SAMPLED)]
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

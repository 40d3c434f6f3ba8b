"""How far live weights have moved since they were scanned last, told from copies that the scan has kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.lowlevel.locks import Lock
from tensornp.core.lowlevel.modes import apart
from tensornp.core.lowlevel.ordinary import is_of_torch
from tensornp.core.lowlevel.torch_private import address_of
from tensornp.core.memory.blocks import BLOCK_NUMEL, Block
from tensornp.core.memory.identity import MemoryReference
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import plain
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.values.compare.numbers import as_vector, norm_of_difference
from tensornp.core.values.reading.blocks import DevicePart, StridedPart, part_of_tensor
from tensornp.core.values.reading.decode import decoder, stored_dtype
from tensornp.core.values.stats.norms import norm_of, size_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.tensor import TensorSource
from tensornp.models.live.update import NOT_FINITE, Moved, Update, updates

MAX_NBYTES = 2**26
"""Bytes of all copies together."""
PIECE_NUMEL = 4096
"""Elements of a sample that lie side by side."""
_GOLDEN = (math.sqrt(5) - 1) / 2
_UNKNOWN = "is not known: the last scan kept nothing of it; it is new, or of another shape, dtype or memory"
_NOT_KEPT = "is not known: of this kind of tensor nothing is kept"
_NOT_READ = "is not known: it could not be read"
Array = np.ndarray[Any, Any]


class LastScan:
    """Copies of live weights by the memory in which they lie; a copy goes with that, or where later ones need the room.

    Of what has no room as a whole, elements are kept that are spread evenly.
    """

    def __init__(self) -> None:
        self._copies: dict[_Place, _Copy] = {}
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of all copies."""
        return sum(one.codes.nbytes for one in list(self._copies.values()))

    def forget_gone(self) -> None:
        """Forget what memory that was given back has held; not while a scan runs, which does so itself."""
        if self._lock.acquire(blocking=False):
            try:
                for place in [place for place, one in self._copies.items() if one.memory.is_gone]:
                    del self._copies[place]
            finally:
                self._lock.release()

    @apart
    def updates_of(
        self, entries: Iterable[WeightEntry], goes_on: Callable[[], bool] = lambda: True
    ) -> dict[str, Update]:
        """Return by its name how far each weight has moved since it was copied, and copy it anew; empty at first.

        Integers, which count or index, and what lies in files are left out.
        """
        with self._lock:
            self.forget_gone()
            named = {one.name: _readable(one) for one in entries if _is_learnt(one)}
            readable = {one.place: one for one in named.values() if one is not None}
            found: dict[_Place, Moved | str] = {}
            for place, num in self._plan(readable).items():
                if not goes_on():
                    break
                found[place] = self._moved(readable[place], num)
        return updates({name: found.get(one.place, "") if one else _NOT_KEPT for name, one in named.items()})

    def _plan(self, readable: Mapping[_Place, _Readable]) -> dict[_Place, int]:
        """Return how many elements of each are to be kept; of what is not among these, the oldest copies give way."""
        most = most_of_each([one.nbytes for one in readable.values()], MAX_NBYTES)
        plan = {place: num_sampled(one.numel, most // one.dtype.itemsize) for place, one in readable.items()}
        nbytes = {place: num * readable[place].dtype.itemsize for place, num in plan.items()}
        before = {place: one.codes.nbytes for place, one in self._copies.items()}
        over = sum({**before, **nbytes}.values()) - MAX_NBYTES
        for place in [place for place in before if place not in plan]:
            if over <= 0:
                break
            over -= self._copies.pop(place).codes.nbytes
        # What gives way comes first, so that there is room for what grows.
        return dict(sorted(plan.items(), key=lambda item: nbytes[item[0]] - before.get(item[0], 0)))

    def _moved(self, readable: _Readable, num: int) -> Moved | str:
        """Return how far a weight has moved since it was copied, or why that is not known, and copy `num` elements."""
        # What is read in part, since it cannot be read any more, is no copy.
        copy = self._copies.pop(readable.place, None)
        try:
            found = _UNKNOWN if copy is None else readable.moved_from(copy.codes)
            if copy is None or copy.codes.size != num:
                # It goes before there is another.
                copy = None
                copy = _Copy(MemoryReference(readable.tensor), readable.copied(num))
        except Exception:
            return _NOT_READ
        self._copies[readable.place] = copy
        return found


class _Place(NamedTuple):
    """Where a weight lies, and how: what is equal for two looks at the same elements, as long as their memory lives."""

    device: str
    address: int
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    dtype: torch.dtype


class _Copy(NamedTuple):
    """The bits of a weight, or of a sample of it, and its memory, which is not kept."""

    memory: MemoryReference
    codes: Array


class _Readable:
    """A weight whose bits are read piece by piece; `nbytes` and `numel` are those that it stores."""

    def __init__(self, tensor: torch.Tensor, info: TensorInfo, part: StridedPart | DevicePart) -> None:
        self.tensor, self._part, self._name = tensor, part.as_codes(), part.dtype
        self.place = _Place(str(info.device), address_of(plain(tensor)), info.shape, info.stride, info.dtype)
        self.dtype = np.dtype(self._part.dtype)
        self.numel = self._part.numel
        self.nbytes = self.numel * self.dtype.itemsize

    def copied(self, num: int) -> Array:
        """Return so many elements as they are now."""
        codes = np.empty(num, self.dtype)
        for place, now in self._read(num):
            codes[place] = now
        return codes

    def moved_from(self, codes: Array) -> Moved | str:
        """Return how far it has moved from a copy, or that not all is finite; the copy becomes one of what is now."""
        differences, before, is_finite = [], [], True
        decode, dtype = decoder(self._name), stored_dtype(self._name)
        for place, now in self._read(codes.size):
            if is_finite:
                a, b = (decode(bits.view(dtype)) for bits in (codes[place], now))
                is_finite = bool(np.isfinite(a).all() and np.isfinite(b).all())
            if is_finite:
                differences.append(norm_of_difference(a, b))
                before.append(norm_of(as_vector(a)))
            codes[place] = now
        if not is_finite:
            return NOT_FINITE
        # Of a sample, what all would have.
        times = math.sqrt(self.numel / codes.size)
        return Moved(size_of(differences) * times, size_of(before) * times, codes.size, self.numel)

    def _read(self, num: int) -> Iterator[tuple[slice, Array]]:
        """Yield the bits of so many elements, some pieces at a time, and where they stand in a copy."""
        pieces, done = pieces_of(self.numel, num), 0
        while some := [*islice(pieces, BLOCK_NUMEL // PIECE_NUMEL if num < self.numel else 1)]:
            # One element has no dimension left.
            blocks = [Block((start,), (size,)) for start, size in some] if self.numel > 1 else [*self._part.blocks()]
            now = np.concatenate(self._part.use_each(blocks, lambda bits, _: bits.reshape(-1).copy()))
            yield slice(done, done + now.size), now
            done += now.size


def _is_learnt(entry: WeightEntry) -> bool:
    """Return whether a weight is a live tensor of floats."""
    is_float = entry.dtype.startswith(("float", "bfloat", "complex"))
    return is_float and isinstance(entry.source, TensorSource) and entry.numel > 0


def _readable(entry: WeightEntry) -> _Readable | None:
    """Return how a weight is read; None of what is no ordinary tensor, or has gaps between its elements."""
    tensor = entry.tensor
    if not is_of_torch(tensor):
        return None
    try:
        info = inspect(tensor)
        part = part_of_tensor(tensor, info) if info.kind is STRIDED and info.data_state == "available" else None
        if isinstance(part, DevicePart) and part.raw.is_contiguous():
            part = replace(part, raw=part.raw.view(-1))
        elif not isinstance(part, StridedPart) or len(part.strided.shape) > 1:
            return None
        # NumPy has no integers for the bits of longer ones.
        return _Readable(tensor, info, part) if info.itemsize <= 8 else None
    except Exception:
        # What cannot be read has been said by the scan.
        return None


def most_of_each(nbytes: Sequence[int], limit: int) -> int:
    """Return how many bytes of each are copied at most, so that all together are no more than `limit`."""
    left = max(limit, 0)
    for i, size in enumerate(sorted(nbytes)):
        if size * (len(nbytes) - i) > left:
            return left // (len(nbytes) - i)
        left -= size
    return max(nbytes, default=0)


def num_sampled(numel: int, most: int) -> int:
    """Return how many of `numel` elements are copied where that may be `most`: all, or whole pieces."""
    return numel if numel <= most else most // PIECE_NUMEL * PIECE_NUMEL or most


def pieces_of(numel: int, num: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the size of pieces of `numel` elements, `num` together: all of them, or spread evenly.

    Each lies anywhere in its share, by the golden ratio: at equal distances they might meet the same columns only.
    """
    if num >= numel:
        yield from ((start, min(BLOCK_NUMEL, numel - start)) for start in range(0, numel, BLOCK_NUMEL))
        return
    size = min(PIECE_NUMEL, num)
    count = num // size
    for i in range(count):
        first, end = i * numel // count, (i + 1) * numel // count
        yield first + int(i * _GOLDEN % 1 * (end - first - size + 1)), size

"""How far live weights have moved since they were scanned last, told from copies that the scan has kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch

from tensornp.core.lowlevel.locks import Lock
from tensornp.core.lowlevel.modes import apart
from tensornp.core.lowlevel.torch_private import address_of
from tensornp.core.memory.identity import MemoryReference
from tensornp.core.memory.strided import BLOCK_NUMEL, Block
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import plain
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import STRIDED
from tensornp.core.values.compare.pair_tally import as_vector, norm_of_difference
from tensornp.core.values.reading.blocks import DevicePart, StridedPart, part_of_tensor
from tensornp.core.values.reading.decode import decoder, stored_dtype
from tensornp.core.values.stats.norms import norm_of, size_of
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.tensor import PLAIN, TensorSource
from tensornp.models.outline.columns import ABOUT, at_a_glance

MAX_NBYTES = 2**26
"""Bytes of all copies together."""
PIECE_NUMEL = 4096
"""Elements of a sample that lie side by side."""
_GOLDEN = (math.sqrt(5) - 1) / 2
_UNKNOWN = "is not known: the last scan kept nothing of it; it is new, or of another shape, dtype or memory"
_NOT_FINITE = "is not known: not all of it is finite"
_NOT_KEPT = "is not known: of this kind of tensor nothing is kept"
_NOT_READ = "is not known: it could not be read"
_TOO_MANY = "is not known: there is no room for a copy"
Array = np.ndarray[Any, Any]


class Update(NamedTuple):
    """How far a weight has moved: the norm of the difference over that of the weight, in words, and how it is told.

    `size` is None, and there is no text, where the title says why it is not known.
    """

    size: float | None
    text: str
    title: str
    is_sampled: bool = False


class Moved(NamedTuple):
    """The norms of a difference and of the weight before, told from `num_read` of `numel` elements."""

    difference: float
    before: float
    num_read: int
    numel: int


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
            room = self._make_room(readable.values())
            found: dict[_Place, Moved | str] = {}
            for place, one in readable.items():
                if not goes_on():
                    break
                found[place] = self._moved(one, room.get(place, 0))
        return updates({name: found.get(one.place, "") if one else _NOT_KEPT for name, one in named.items()})

    def _make_room(self, readable: Iterable[_Readable]) -> dict[_Place, int]:
        """Return how many elements are copied of weights that were not copied yet; the oldest of others give way."""
        fresh = {one.place: one for one in readable if one.place not in self._copies}
        own = {one.place for one in readable} - fresh.keys()
        left = MAX_NBYTES - sum(self._copies[place].codes.nbytes for place in own)
        most = most_of_each([one.nbytes for one in fresh.values()], left)
        room = {place: num_sampled(one.numel, most // one.dtype.itemsize) for place, one in fresh.items()}
        left -= sum(num * fresh[place].dtype.itemsize for place, num in room.items())
        others = [place for place in self._copies if place not in own]
        nbytes = sum(self._copies[place].codes.nbytes for place in others)
        for place in others:
            if nbytes <= left:
                break
            nbytes -= self._copies.pop(place).codes.nbytes
        return room

    def _moved(self, readable: _Readable, num_sampled: int) -> Moved | str:
        """Return how far a weight has moved since it was copied, or why that is not known, and copy it anew."""
        # What is read in part, since it cannot be read any more, is no copy.
        copy = self._copies.pop(readable.place, None)
        is_first = copy is None
        if copy is None:
            if not num_sampled:
                return _TOO_MANY
            copy = _Copy(MemoryReference(readable.tensor), np.empty(num_sampled, readable.dtype))
        try:
            found = readable.moved_from(copy.codes, is_first=is_first)
        except Exception:
            return _NOT_READ
        self._copies[readable.place] = copy
        return _UNKNOWN if is_first else found


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

    def moved_from(self, codes: Array, *, is_first: bool) -> Moved | str:
        """Return how far what is read has moved from `codes`, over which it is written; nothing of garbage at first."""
        differences, before, is_finite = [], [], True
        decode, dtype, done = decoder(self._name), stored_dtype(self._name), 0
        for blocks in self._blocks(codes.size):
            now = np.concatenate(self._part.use_each(blocks, lambda bits, _: bits.reshape(-1).copy()))
            old = codes[done : done + now.size]
            if not is_first and is_finite:
                a, b = (decode(bits.view(dtype)) for bits in (old, now))
                is_finite = bool(np.isfinite(a).all() and np.isfinite(b).all())
                if is_finite:
                    differences.append(norm_of_difference(a, b))
                    before.append(norm_of(as_vector(a)))
            old[:] = now
            done += now.size
        if not is_finite:
            return _NOT_FINITE
        # Of a sample, what all would have.
        times = math.sqrt(self.numel / codes.size)
        return Moved(size_of(differences) * times, size_of(before) * times, codes.size, self.numel)

    def _blocks(self, num: int) -> Iterator[list[Block]]:
        """Yield what is read of so many elements, some pieces at a time."""
        if self.numel == 1:
            # One element has no dimension left.
            yield [*self._part.blocks()]
            return
        pieces = pieces_of(self.numel, num)
        while some := [*islice(pieces, BLOCK_NUMEL // PIECE_NUMEL if num < self.numel else 1)]:
            yield [Block((start,), (size,)) for start, size in some]


def _is_learnt(entry: WeightEntry) -> bool:
    """Return whether a weight is a live tensor of floats."""
    is_float = entry.dtype.startswith(("float", "bfloat", "complex"))
    return is_float and isinstance(entry.source, TensorSource) and entry.numel > 0


def _readable(entry: WeightEntry) -> _Readable | None:
    """Return how a weight is read; None of what is no ordinary tensor, or has gaps between its elements."""
    tensor = entry.tensor
    if type(tensor) not in PLAIN:
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


def updates(found: Mapping[str, Moved | str]) -> dict[str, Update]:
    """Return how far weights have moved, each beside its own norm or the median of all, whichever is larger.

    As a comparison tells it: what was zero has not moved infinitely. Of what is a text, that is why it is not known.
    """
    moved = {name: one for name, one in found.items() if not isinstance(one, str)}
    norms = [one.before for one in moved.values() if one.before and math.isfinite(one.before)]
    median_norm = median(norms) if norms else 0.0
    told = {name: _update(one, median_norm) for name, one in moved.items()}
    # Where nothing is known there is nothing to say why.
    return told | {name: Update(None, "", one) for name, one in found.items() if isinstance(one, str) and one and told}


def _update(moved: Moved, median_norm: float) -> Update:
    """Return how far one weight has moved beside its own norm or `median_norm`, whichever is larger."""
    difference, before, num_read, numel = moved
    size = difference / (max(before, median_norm) or 1.0)
    if not math.isfinite(size):
        return Update(None, "", _NOT_FINITE)
    is_sampled = num_read < numel
    text = "from 0" if difference and not before else ABOUT * is_sampled + at_a_glance(size)
    said = f"‖Δ‖ {difference:.3g} over the norm before, {before:.3g}"
    if before < median_norm:
        said = f"‖Δ‖ {difference:.3g} over the median of all norms, {median_norm:.3g}; its own was {before:.3g}"
    elif not before:
        said = f"‖Δ‖ {difference:.3g}, and all norms were 0"
    title = f"from {num_read:,} of {numel:,} elements: {said}" if is_sampled else said
    return Update(size, text, title, is_sampled)

"""What lies deflated in a file: it is inflated up to the bytes that are asked for, and never more than was told."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tensornp.models.entries.entry import Extent
from tensornp.models.entries.file import FileEntry
from tensornp.models.entries.stored import ReadPlan, native, tensor_of
from tensornp.models.files.deflate import Array, Inflated, _Stream
from tensornp.models.files.source_file import OpenFile, Reader

_MAX_WHOLE_NBYTES = 2**22
_MARKED_NBYTES, _MAX_MARKS = 2**22, 64
"""Bytes after which a place is kept, and how many are: each takes some 40 KiB."""


class _Marked:
    """Deflated bytes that are read again and again: places are kept, and what follows one is inflated from there on.

    Several threads may read it, one at a time; it is best read upwards.
    """

    def __init__(self, source: Inflated) -> None:
        self._source, self._lock = source, threading.Lock()
        self._last: _Stream | None = None
        self._marks: list[_Stream] = []
        self._step = _MARKED_NBYTES

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._source.path

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """Open it for some reads."""
        with self._lock, self._source.file.opened() as there:
            yield _MarkedReader(self, there)

    def read_into(self, there: OpenFile, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        last, self._last = self._last, None
        before = [one for one in (*self._marks, last) if one is not None and one.at <= offset]
        nearest = max(before, key=lambda one: one.at, default=None)
        stream = nearest.copy(there) if nearest is not None else _Stream(self._source, there)
        for at in range(stream.at + self._step, offset, self._step):
            stream.read(at - 1, 1)
            self._mark(stream)
        stream.read_into(target, offset)
        self._mark(stream)
        # Not of one that has failed.
        self._last = stream if stream.at < self._source.nbytes else None

    def _mark(self, stream: _Stream) -> None:
        """Keep this place, if it is far behind those that are kept; of too many, each second one is let go."""
        last = self._marks[-1].at if self._marks else 0
        if not last + self._step <= stream.at < self._source.nbytes:
            return
        self._marks.append(stream.copy())
        if len(self._marks) > _MAX_MARKS:
            self._marks, self._step = self._marks[1::2], self._step * 2


class _MarkedReader(Reader):
    """One that is open."""

    def __init__(self, marked: _Marked, there: OpenFile) -> None:
        self._marked, self._there = marked, there

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        self._marked.read_into(self._there, target, offset)


class InflatedEntry(FileEntry):
    """A weight that is compressed: to read a part of it, all before that part is inflated too."""

    __slots__ = ()

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where it lies compressed."""
        packed = self._packed
        return (Extent(packed.path, packed.offset, packed.packed_nbytes),)

    def plan(self, index: Any = ...) -> ReadPlan:
        """Return what `to_numpy` would read at most."""
        return super().plan(index)._replace(nbytes_read=self._packed.packed_nbytes, num_reads=1)

    def values(self) -> Any:
        """Return a tensor of all values if they are few; else what inflates them some at a time.

        In Fortran order, all is inflated anew for each 2**20 elements in the order of their indices.
        """
        self.check_readable()
        if self.nbytes <= _MAX_WHOLE_NBYTES:
            return tensor_of(native(self._read(...)), self.dtype_of_values)
        reread = copy.copy(self)
        reread._file = _Marked(self._packed)
        return replace(super(InflatedEntry, reread).values(), is_sequential=True)

    @property
    def is_shared_out(self) -> bool:
        """Return False: each task would begin at the beginning."""
        return False

    @property
    def _packed(self) -> Inflated:
        assert isinstance(self._file, Inflated)
        return self._file

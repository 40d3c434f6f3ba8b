"""A file at an address, which is read by positions as one on disk is: no byte comes that was not asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

import numpy as np

from tensornp.core.lowlevel.threads import carried_out
from tensornp.errors import ChangedFileError, CheckpointError
from tensornp.models.files.address import HTTP, Address, Version
from tensornp.models.files.source_file import Array, ListedFile, Reader

_PIECE_NBYTES, _MAX_PIECES = 2**12, 16
"""Bytes that are asked for at least while a file is listed; and how many such pieces are kept meanwhile."""
_MAX_REQUESTS = 16
"""Parts that are asked for at once."""
_NEAR_NBYTES = 2**18
"""Bytes that come at least where all is read."""


@dataclass(frozen=True, slots=True)
class RemoteFile(ListedFile):
    """A file as its server told of it when it was listed; `path` is what is shown of its address.

    It can be sent to another process. While it is listed or scanned, what has come last is kept in `pieces`.
    """

    path: str
    address: Address
    version: Version
    pieces: list[tuple[int, Array]] = field(default_factory=list, repr=False, compare=False)
    near: Any = field(default_factory=RLock, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteFile, (self.path, self.address, self.version)

    @classmethod
    @contextmanager
    def listed(cls, address: Address, nbytes: int) -> Iterator[RemoteFile]:
        """Ask for the first `nbytes` of a file, which are at hand as long as the block lasts.

        CheckpointError, a sentence, where it cannot be had in parts; MissingLibraryError without its protocol.
        """
        # Whoever opens it anew asks anew where it lies.
        address, head = Address(address.url), np.empty(nbytes, np.uint8)
        version, count = _filler(address)(address, memoryview(head.data), 0)
        file = cls(str(address), address, version, [(0, head[:count])])
        try:
            yield file
        finally:
            file.pieces.clear()

    @contextmanager
    def scanned(self, *parts: range) -> Iterator[None]:
        """Have small parts that lie side by side come together, as long as the block lasts; `parts` come at once."""
        is_inner = bool(self.pieces)
        self.pieces.append((0, np.empty(0, np.uint8)))
        try:
            if parts:
                with self.opened() as there:
                    found = carried_out(there.whole, parts, min(len(parts), _MAX_REQUESTS))
                    self.pieces.extend(zip((one.start for one in parts), found, strict=True))
            yield
        finally:
            if not is_inner:
                self.pieces.clear()

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.version.nbytes

    @contextmanager
    def opened(self) -> Iterator[_RemoteReader]:
        """Read it for a while; each answer is compared with what was listed.

        Raises
        ------
        ChangedFileError
            If another file is there, or none, or nobody answers.
        """
        yield _RemoteReader(self)


class _Shared:
    """A piece that several threads take from, and how much of it nobody has taken yet."""

    def __init__(self, nbytes: int) -> None:
        self.lock, self.left = RLock(), nbytes
        self.data: Array | None = None


class _RemoteReader(Reader):
    """Several threads may read it."""

    def __init__(self, file: RemoteFile) -> None:
        self._file, self._lock = file, RLock()
        self._shared: dict[int, _Shared] = {}

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        self._read(memoryview(target.data), offset, _PIECE_NBYTES)

    def whole(self, part: range) -> Array:
        """Return these bytes, and ask for no others."""
        made = np.empty(len(part), np.uint8)
        self._read(memoryview(made.data), part.start, 0)
        return made

    def _read(self, view: memoryview, offset: int, least: int) -> None:
        """Fill the view; where pieces are kept, a few bytes come with those around them."""
        pieces, done = self._file.pieces, self._at_hand(view, offset)
        while done < len(view):
            left, at = view[done:], offset + done
            if not pieces or len(left) >= least:
                done += self._fill(left, at)
                continue
            # One thread after the other, so that no two ask for the same.
            with self._file.near:
                if not self._at_hand(left[:1], at):
                    # From a multiple on: what is read backwards, as the end of a zip is, comes together too.
                    start, piece = at - at % least, np.empty(least, np.uint8)
                    pieces.append((start, piece[: self._fill(memoryview(piece.data), start)]))
                    del pieces[1:-_MAX_PIECES]
                # A server may give less at once.
                done += self._at_hand(left, at) or self._fill(left, at)

    def read_of(self, piece: range, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on; the piece comes by one request, for all threads."""
        if len(piece) < _NEAR_NBYTES or not piece.start <= offset <= piece.stop - len(target):
            self._read(memoryview(target.data), offset, _NEAR_NBYTES)
            return
        with self._lock:
            shared = self._shared.setdefault(piece.start, _Shared(len(piece)))
        with shared.lock:
            if shared.data is None:
                shared.data = self.read(piece.start, len(piece))
            target[:] = shared.data[offset - piece.start :][: len(target)]
            shared.left -= len(target)
        with self._lock:
            for start in [start for start, one in self._shared.items() if one.left <= 0] or list(self._shared)[:-16]:
                del self._shared[start]

    def _at_hand(self, view: memoryview, offset: int) -> int:
        """Take what has come already, and return how many bytes."""
        for start, piece in self._file.pieces:
            found = piece[offset - start :][: len(view)] if start <= offset else piece[:0]
            if len(found):
                view[: len(found)] = found.data
                return len(found)
        return 0

    def _fill(self, view: memoryview, offset: int) -> int:
        file = self._file
        try:
            version, count = _filler(file.address)(file.address, view, offset)
        except CheckpointError as error:
            raise ChangedFileError(str(error)) from None
        if version != file.version:
            was, now = file.version, version
            how = f"had {was.nbytes:,} bytes and has {now.nbytes:,}" if was.nbytes != now.nbytes else "is another one"
            raise ChangedFileError(f"{file.path!r} {how} since it was listed; open it again")
        if not count:
            raise CheckpointError(f"{file.path!r} ends before byte {offset + len(view):,}")
        return count


def _filler(address: Address) -> Callable[[Address, memoryview, int], tuple[Version, int]]:
    if address.scheme in HTTP:
        from tensornp.models.files import over_http

        return over_http.fill
    from tensornp.models.files import over_fsspec

    return over_fsspec.fill

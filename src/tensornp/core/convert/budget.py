"""Refuse arrays that need more memory than is free, and find read-only memory maps."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from pathlib import Path

import numpy as np

from tensornp.core.lowlevel.text import format_nbytes, quoted
from tensornp.core.tensor.facts import TensorInfo
from tensornp.errors import BadRequestError, TooLargeError

SMALL_NBYTES = 2**28
"""Arrays up to this many bytes are made without asking the system."""
_CGROUP = Path("/sys/fs/cgroup")


class Budget:
    """Counts the bytes of new arrays against `max_nbytes`, or against the free memory if that is None."""

    def __init__(self, max_nbytes: int | None, cure: str = "slice the tensor first") -> None:
        if max_nbytes is not None and (not isinstance(max_nbytes, (int, np.integer)) or max_nbytes < 0):
            raise BadRequestError(f"max_nbytes must be a number of bytes or None, got {quoted(max_nbytes)}")
        self._is_free = max_nbytes is None
        self._limit = max_nbytes
        self._cure = cure if max_nbytes is None else f"{cure}, or pass a larger max_nbytes"
        self._taken = 0

    def take(self, nbytes: int) -> None:
        """Count an array before it is made; raise TooLargeError if it does not fit."""
        before, self._taken = self._taken, self._taken + nbytes
        if self._limit is None and self._taken > SMALL_NBYTES:
            self._limit = before + free_nbytes()
        if self._limit is None or self._taken <= self._limit:
            return
        what, more = ("the arrays would together", " and more") if before else ("the array would", "")
        is_close = format_nbytes(self._taken) == format_nbytes(self._limit)
        taken, limit = (f"{n:,} bytes" if is_close else format_nbytes(n) for n in (self._taken, self._limit))
        raise TooLargeError(
            f"{what} take {taken}{more}, and {limit} are {'free' if self._is_free else 'allowed'}; {self._cure}",
            self._taken,
        )


def free_nbytes() -> int:
    import psutil

    free = int(psutil.virtual_memory().available)
    try:
        limit, used = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        statistics = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        # There is no such file, or no limit ("max").
        return free
    # Cached pages of files can be dropped.
    return max(min(free, limit - used + int(statistics.get("inactive_file", 0))), 0)


def with_page_protection(info: TensorInfo) -> TensorInfo:
    """Return `info` with `_is_readonly_map` from ``/proc/self/maps`` (Linux, 0.1 ms)."""
    if info.inner is not None:
        return dataclasses.replace(info, inner=with_page_protection(info.inner))
    if info.storage is None or not info.storage.address:
        return info
    low = info.storage.address
    high = low + max(info.storage.reach - (info.storage_offset or 0) * info.itemsize, 1)
    is_readonly = False
    with suppress(OSError), open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            bounds, flags = line.split(maxsplit=2)[:2]
            start, end = (int(bound, 16) for bound in bounds.split("-"))
            is_readonly |= start < high and low < end and "w" not in flags
    return dataclasses.replace(info, _is_readonly_map=is_readonly)

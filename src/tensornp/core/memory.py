"""How many bytes of main memory are free: what a copy may take, so that it never ends the kernel."""

from __future__ import annotations

from pathlib import Path

SMALL_NBYTES = 2**28
"""Arrays up to this many bytes are made without asking."""
_WIDEST = 16
"""Bytes of an element of the widest dtype, complex128."""
_CGROUP = Path("/sys/fs/cgroup")


def budget_for(numel: int, max_nbytes: int | None) -> int | None:
    """Return the bytes that an array of `numel` elements may take: `max_nbytes`, or what is free where that is None.

    None, no limit, for a small array. Asking costs some tens of microseconds.
    """
    if max_nbytes is not None:
        return max_nbytes
    return free_nbytes() if numel * _WIDEST > SMALL_NBYTES else None


def free_nbytes(cgroup: Path = _CGROUP) -> int:
    """Return the bytes that this process can still take: those free in the machine, or in its container if fewer.

    A container's limit is read from control groups, version 2 (``memory.max``, see the kernel's cgroup-v2.rst);
    pages of files that it caches and can drop are counted as free.
    """
    import psutil

    free = int(psutil.virtual_memory().available)
    try:
        limit = int((cgroup / "memory.max").read_text())
        used = int((cgroup / "memory.current").read_text())
        statistics = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
        return min(free, limit - used + int(statistics.get("inactive_file", 0)))
    except (OSError, ValueError):
        return free

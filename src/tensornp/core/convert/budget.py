"""How many bytes of main memory are free: what a copy may take, so that it never ends the kernel."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.lowlevel.text import format_nbytes, quoted
from tensornp.errors import BadRequestError, TooLargeError

SMALL_NBYTES = 2**28
"""Arrays up to this many bytes are made without asking."""
_CGROUPS, _OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_FILES_V2 = ("memory.max", "memory.current", "inactive_file")
_FILES_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


class Budget:
    """What some new arrays may take together: `max_nbytes`, or what is free where that is None.

    Small ones are made without asking. The machine is asked once a second at most, which costs about 0.1 ms; to fill
    what was free takes longer. What `fewer` says is how the caller has a part of them.
    """

    def __init__(self, max_nbytes: int | None, fewer: str = "slice the tensor first") -> None:
        if max_nbytes is not None and (not isinstance(max_nbytes, (int, np.integer)) or max_nbytes < 0):
            raise BadRequestError(f"max_nbytes must be a number of bytes or None, got {quoted(max_nbytes)}")
        self._is_free = max_nbytes is None
        self._limit = max_nbytes
        # To go beyond what is free is nobody's cure, and not every caller takes a limit.
        self._cure = fewer if max_nbytes is None else f"{fewer}, or pass a larger max_nbytes"
        self._taken = 0

    def take(self, nbytes: int) -> None:
        """Count an array of so many bytes that is about to be made; `TooLargeError` if that is more than there is."""
        before, self._taken = self._taken, self._taken + nbytes
        if self._limit is None and self._taken <= SMALL_NBYTES:
            return
        if self._limit is None:
            self._limit = before + _free_nbytes_at(int(time.monotonic()))
        if self._taken > self._limit:
            what, more = ("the arrays would together", " and more") if before else ("the array would", "")
            is_close = format_nbytes(self._taken) == format_nbytes(self._limit)
            taken, limit = (f"{n:,} bytes" if is_close else format_nbytes(n) for n in (self._taken, self._limit))
            raise TooLargeError(
                f"{what} take {taken}{more}, and {limit} are {'free' if self._is_free else 'allowed'}; {self._cure}",
                self._taken,
            )


def within_budget(plan: ConversionPlan, max_nbytes: int | None) -> ConversionPlan:
    """Return `plan`, whose array takes no more than `max_nbytes`, or no more than is free where that is None.

    Raises
    ------
    TooLargeError
        If it takes more.
    """
    Budget(max_nbytes).take(plan.nbytes_copied)
    return plan


@functools.lru_cache(maxsize=1)
def _free_nbytes_at(second: int) -> int:
    return free_nbytes()


def free_nbytes(cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> int:
    """Return the bytes that this process can still take: those free in the machine, or in its container if fewer.

    A container's limits are those of the control groups that the process is in, of version 2 (``memory.max``, see the
    kernel's cgroup-v2.rst) or 1; pages of files that it caches and can drop are counted as free.
    """
    import psutil

    left = [nbytes for group in _groups(cgroups, own) for nbytes in _left_in(*group)]
    return max(0, min([int(psutil.virtual_memory().available), *left]))


def _groups(cgroups: Path, own: Path) -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """Yield the folders of the groups from the process's own to the root, and the names of their files.

    Where a container shows its own group as the root, that of the process may not be there by its full name.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for version, files in (("", _FILES_V2), ("memory", _FILES_V1)):
            if version in controllers.split(","):
                root = cgroups / version
                group = root / path.strip("/")
                yield from ((folder, files) for folder in (group, *group.parents) if folder.is_relative_to(root))


def _left_in(group: Path, files: tuple[str, str, str]) -> list[int]:
    """Return the bytes that may still be taken in a group; nothing where it has no limit."""
    limit, used, cached = files
    try:
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        nbytes = int((group / limit).read_text()) - int((group / used).read_text())
        return [nbytes + int(statistics.get(cached, 0))]
    except (OSError, ValueError):
        return []

"""How many bytes of main memory are free: what a copy may take, so that it never ends the kernel."""

from __future__ import annotations

import functools
import time
from pathlib import Path

import numpy as np

from tensornp.core.plan import ConversionPlan
from tensornp.errors import BadRequestError, TooLargeError

SMALL_NBYTES = 2**28
"""Arrays up to this many bytes are made without asking."""
_CGROUP = Path("/sys/fs/cgroup")


def within_budget(plan: ConversionPlan, max_nbytes: int | None) -> ConversionPlan:
    """Return `plan`, whose array takes no more than `max_nbytes`, or no more than is free where that is None.

    Small arrays are made without asking. The machine is asked once a second at most, which costs about 0.1 ms; to fill
    what was free takes longer.

    Raises
    ------
    TooLargeError
        If it takes more.
    """
    if max_nbytes is not None and (not isinstance(max_nbytes, (int, np.integer)) or max_nbytes < 0):
        raise BadRequestError(f"max_nbytes={max_nbytes!r} means nothing here; pass a number of bytes, or None")
    if max_nbytes is None and plan.nbytes_copied <= SMALL_NBYTES:
        return plan
    budget = _free_nbytes_at(int(time.monotonic())) if max_nbytes is None else max_nbytes
    if plan.nbytes_copied > budget:
        raise TooLargeError(
            f"the array would take {plan.nbytes_copied:,} bytes, more than the {budget:,} that are "
            f"{'free' if max_nbytes is None else 'allowed'}; slice the tensor first, or pass a larger max_nbytes"
        )
    return plan


@functools.lru_cache(maxsize=1)
def _free_nbytes_at(second: int) -> int:
    return free_nbytes()


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

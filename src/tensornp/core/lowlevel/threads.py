"""Count cores."""

from __future__ import annotations

import os

_MAX_CORES = 16


def num_cores() -> int:
    # macOS and Windows have no affinity.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MAX_CORES)

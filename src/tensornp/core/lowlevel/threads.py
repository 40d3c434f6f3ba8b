"""Count cores and running cells."""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Any

_MAX_CORES = 16


def num_cores() -> int:
    # macOS and Windows have no affinity.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MAX_CORES)


class _Cells:
    def __init__(self) -> None:
        self._running: Counter[int] = Counter()

    def begin(self, *_: Any) -> None:
        self._running[threading.get_ident()] += 1

    def end(self, *_: Any) -> None:
        self._running[threading.get_ident()] -= 1

    def run_in(self, ident: int | None) -> bool:
        return ident is not None and self._running[ident] > 0


cells = _Cells()

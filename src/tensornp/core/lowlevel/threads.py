"""Count cores and running cells, and run tasks in threads."""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

_MAX_CORES = 16
_T = TypeVar("_T")
_R = TypeVar("_R")


def num_cores() -> int:
    """Return the number of cores that this process may use, at most 16."""
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


def carried_out(work: Callable[[_T], _R], tasks: Iterable[_T], num_threads: int) -> Generator[_R, None, None]:
    """Yield the result of each task in order; an error, or closing it, cancels those that have not begun."""
    pool = ThreadPoolExecutor(num_threads)
    waiting: deque[Future[_R]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) >= 2 * num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)

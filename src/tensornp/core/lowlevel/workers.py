"""Run tasks in threads and give their results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def carried_out(work: Callable[[_T], _R], tasks: Iterable[_T], num_threads: int) -> Generator[_R, None, None]:
    """Yield the result of each task in order; at most two tasks per thread are under way.

    One thread means the calling one. An error, or closing the generator, cancels the tasks that have not begun.
    """
    if num_threads == 1:
        yield from map(work, tasks)
        return
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

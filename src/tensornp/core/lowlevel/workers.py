"""Tasks that several threads carry out, of which the results come in the order of the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def carried_out(work: Callable[[_T], _R], tasks: Iterable[_T], num_threads: int) -> Generator[_R, None, None]:
    """Yield what `work` makes of each task, in their order; at most two for each thread are under way.

    With one thread, this one does it. Close it where not all are taken: what has not begun is then left.
    """
    if num_threads == 1:
        yield from map(work, tasks)
        return
    pool = ThreadPoolExecutor(num_threads)
    waiting: deque[Future[_R]] = deque()
    try:
        for task in tasks:
            waiting.append(_submitted(pool, work, task))
            if len(waiting) >= 2 * num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _submitted(pool: ThreadPoolExecutor, work: Callable[[_T], _R], task: _T) -> Future[_R]:
    """Have the pool do it; where Python ends, and takes no more work, it is done at once."""
    try:
        return pool.submit(work, task)
    except RuntimeError:
        done: Future[_R] = Future()
        done.set_result(work(task))
        return done

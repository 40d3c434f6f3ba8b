"""Tasks that several threads carry out, of which the results come in the order of the tasks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_ENDED_EVERY_S = 0.05
_ends: dict[int, Callable[[], object]] = {}
"""What ends the wait of a thread for another machine."""


@contextmanager
def ended_with_its_pool(end: Callable[[], object]) -> Iterator[None]:
    """Have `end` called by another thread where what this one waits for in the block is not wanted any more."""
    ident = threading.get_ident()
    _ends[ident] = end
    try:
        yield
    finally:
        _ends.pop(ident, None)


class Workers(ThreadPoolExecutor):
    """Threads of which none waits for another machine once they are ended, as by an error: Ctrl-C is one."""

    def __init__(self, num_threads: int) -> None:
        self._idents: list[int] = []
        self._under_way: set[Future[Any]] = set()
        super().__init__(num_threads, initializer=_note_ident, initargs=(self._idents,))

    def submit(self, fn: Callable[..., _R], /, *args: Any, **kwargs: Any) -> Future[_R]:
        """Have something done; at once where no thread can be had, as where Python ends or the system has no more."""
        try:
            future = super().submit(fn, *args, **kwargs)
        except RuntimeError:
            future = Future()
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)
            return future
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    def end(self) -> None:
        """Take back what has not begun, and end what is waited for; returns once no thread is at work."""
        self.shutdown(wait=False, cancel_futures=True)
        while left := self._under_way.copy():
            # Again and again: one that was between two waits begins the next one.
            for end in filter(None, map(_ends.get, self._idents)):
                end()
            wait(left, _ENDED_EVERY_S)

    def __exit__(self, kind: Any, *others: Any) -> bool | None:
        if kind is not None:
            self.end()
        return super().__exit__(kind, *others)


def _note_ident(idents: list[int]) -> None:
    idents.append(threading.get_ident())


def carried_out(work: Callable[[_T], _R], tasks: Iterable[_T], num_threads: int) -> Generator[_R, None, None]:
    """Yield what `work` makes of each task, in their order; at most two for each thread are under way.

    With one thread, this one does it. Close it where not all are taken: what has not begun is then left.
    """
    if num_threads == 1:
        yield from map(work, tasks)
        return
    pool = Workers(num_threads)
    waiting: deque[Future[_R]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) >= 2 * num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BaseException:
        pool.end()
        raise
    finally:
        pool.shutdown(cancel_futures=True)

"""What is taken before a block is given back after it, wherever Ctrl-C comes."""

from __future__ import annotations

import io
import operator
import threading
from collections.abc import Callable
from typing import Any


class Held(io.IOBase):
    """Calls `take` before a block and `give_back` after it, both of which are written in C.

    Since Python 3.14 a ``with`` alone does not: Ctrl-C may come once `take` has returned, before the block has begun. A
    file, because the `__exit__` of files is written in C, and calls `close`.
    """

    # Nothing is given back when the garbage collector finds it.
    closed = True

    def __init__(self, take: Callable[[], Any], give_back: Callable[[], Any]) -> None:
        self._take = take
        self.close = give_back  # type: ignore[method-assign]

    def __enter__(self) -> None:  # type: ignore[override]
        taken: list[Any] = []
        try:
            # It is taken, and that is noted, by one call of C: Ctrl-C comes before or after it.
            taken.extend(map(operator.call, (self._take,)))
        except BaseException:
            if taken:
                self.close()
            raise


class Lock(Held):
    """A lock that the thread which has it may take once more."""

    def __init__(self) -> None:
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release
        super().__init__(lock.acquire, lock.release)

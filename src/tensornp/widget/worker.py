"""Run slow tasks in one thread while other messages of a page are answered."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable

_log = logging.getLogger(__name__)


class Worker:
    """Runs tasks in order in a thread; only the latest of each key waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, Callable[[], None]] = {}
        self._is_running = False

    def do(self, key: Hashable, task: Callable[[], None]) -> None:
        """Run `task` after the waiting ones, and drop a waiting one with the same `key`."""
        with self._lock:
            self._waiting.pop(key, None)
            self._waiting[key] = task
            if not self._is_running:
                # A kernel that ends does not wait for it.
                threading.Thread(target=self._run, name="tensornp worker", daemon=True).start()
                self._is_running = True

    def forget(self) -> None:
        """Drop the waiting tasks."""
        with self._lock:
            self._waiting.clear()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except BaseException:
                # Whatever a class of the user's raises, the next one is done.
                _log.exception("a request of a page failed")

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            self._is_running = bool(self._waiting)
            return self._waiting.pop(next(iter(self._waiting))) if self._waiting else None

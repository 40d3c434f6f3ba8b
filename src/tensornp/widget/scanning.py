"""Run a scan in a thread, report its progress and end it on request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from tensornp.core.lowlevel.attributes import error_text
from tensornp.errors import TensornpError

TOLD_EVERY_S = 0.2
"""Seconds between two tellings of how far it is."""
GoOn = Callable[[int, int], bool]
"""Is told how much of how much was read, and returns whether more is to be read."""
_Found = TypeVar("_Found")


class Scanning(Generic[_Found]):
    """Runs `read`; `told` gets the progress, `done` the result or an error text.

    Both are called in the thread of the scan, with this object before the rest. One that was ended gives what it has
    found until then.
    """

    def __init__(
        self,
        read: Callable[[GoOn], _Found],
        told: Callable[[Scanning[_Found], float], None],
        done: Callable[[Scanning[_Found], _Found | None, str], None],
    ) -> None:
        self._told, self._done = told, done
        self._last = 0.0
        self._is_ended = threading.Event()
        # A kernel that ends does not wait for it.
        self._thread = threading.Thread(target=self._run, args=(read,), name="tensornp scan", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End it within a task, some milliseconds of reading."""
        self._is_ended.set()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended."""
        self._thread.join(timeout_s)

    def _run(self, read: Callable[[GoOn], _Found]) -> None:
        found: _Found | None = None
        reason = ""
        try:
            found = read(self._go_on)
        except Exception as error:
            reason = str(error) if isinstance(error, TensornpError) else f"it cannot be read: {error_text(error)}"
        # What is read goes with the function that reads it.
        del read
        self._done(self, found, reason)

    def _go_on(self, done: int, total: int) -> bool:
        now = time.monotonic()
        if now - self._last >= TOLD_EVERY_S:
            self._last = now
            self._told(self, done / max(total, 1))
        return not self._is_ended.is_set()

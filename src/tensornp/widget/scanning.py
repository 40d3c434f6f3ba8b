"""A scan in a thread of its own, so that the kernel stays free: it tells how far it is, and can be ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import torch

from tensornp.core.values.stats.compute import scan
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import TensornpError

TOLD_EVERY_S = 0.2
"""Seconds between two tellings of how far it is."""
Told = Callable[["Scanning", float], None]
Done = Callable[["Scanning", TensorStats | None, str], None]


class Scanning:
    """Reads all of `tensor`; `told` gets the share that was read, `done` the statistics, or why there are none.

    Both are called in the thread of the scan, with this object before the rest. One that was ended gives the
    statistics of what it has read.
    """

    def __init__(self, tensor: torch.Tensor, told: Told, done: Done) -> None:
        self._told, self._done = told, done
        self._last = 0.0
        self._is_ended = threading.Event()
        # A kernel that ends does not wait for it.
        self._thread = threading.Thread(target=self._run, args=(tensor,), name="tensornp statistics", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End it within a task, some milliseconds of reading."""
        self._is_ended.set()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended."""
        self._thread.join(timeout_s)

    def _run(self, tensor: torch.Tensor) -> None:
        try:
            stats, reason = scan(tensor, progress=self._go_on, num_threads=1), ""
        except TensornpError as error:
            stats, reason = None, str(error)
        except Exception as error:
            stats, reason = None, f"the values cannot be read: {error}"
        del tensor
        self._done(self, stats, reason)

    def _go_on(self, done: int, total: int) -> bool:
        now = time.monotonic()
        if now - self._last >= TOLD_EVERY_S:
            self._last = now
            self._told(self, done / max(total, 1))
        return not self._is_ended.is_set()

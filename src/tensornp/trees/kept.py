"""Statistics of weights in files, which are kept for as long as the files are as they were read."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable

from tensornp.core.values.stats import TensorStats

MAX_NBYTES = 2**26
"""Bytes of all that is kept."""
_SETTLED_NS = 2 * 10**9
"""How long ago a file must have been written: in a shorter time, some file systems tell no second write from the first.
"""


class KeptStats:
    """Statistics by what is equal for the same values of the same files; those not asked for longest go first."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, TensorStats] = OrderedDict()
        self._nbytes = 0
        # Threads of a page and of a cell scan at once.
        self._lock = threading.Lock()

    def get(self, identity: Hashable) -> TensorStats | None:
        """Return what is kept, or None."""
        with self._lock:
            found = self._known.get(identity)
            if found is not None:
                self._known.move_to_end(identity)
            return found

    def keep(self, identity: Hashable, stats: TensorStats, paths: Iterable[str]) -> None:
        """Keep the statistics of what lies at these paths, unless that was written just now."""
        if not all(map(_is_settled, paths)):
            return
        with self._lock:
            self._forget(identity)
            self._known[identity] = stats
            self._nbytes += _nbytes_of(stats)
            while self._nbytes > MAX_NBYTES:
                self._forget(next(iter(self._known)))

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._known.clear()
            self._nbytes = 0

    def _forget(self, identity: Hashable) -> None:
        if (known := self._known.pop(identity, None)) is not None:
            self._nbytes -= _nbytes_of(known)


KEPT = KeptStats()
"""Those of this process, for as long as it lives."""


def _is_settled(path: str) -> bool:
    try:
        return time.time_ns() - os.stat(path).st_mtime_ns > _SETTLED_NS
    except OSError:
        return False


def _nbytes_of(stats: TensorStats) -> int:
    distribution = stats.distribution
    return 1000 + (distribution.keys.nbytes + distribution.counts.nbytes if distribution is not None else 0)

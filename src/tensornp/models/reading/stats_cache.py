"""Statistics of weights in files, which are kept for as long as the files are as they were read."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Collection, Hashable
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from tensornp.core.lowlevel.mappings import mapped_for_writing

if TYPE_CHECKING:
    from tensornp.core.values.stats.record import TensorStats

MAX_NBYTES = 2**26
"""Bytes of all that is kept."""
_SETTLED_NS = 2 * 10**9
"""How long ago a file must have been written: in a shorter time, some file systems tell no second write from the first.
"""


class KeptStats:
    """Statistics by what is equal for the same values of the same files; those not asked for longest go first."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._nbytes = 0
        self._mapped, self._asked_ns = frozenset[int](), 0
        # Threads of a page and of a cell scan at once.
        self._lock = RLock()

    def get(self, key: Hashable, paths: Collection[str]) -> TensorStats | None:
        """Return what is kept of the values of this key, which lie in these files, or None."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
        return found.stats if found is not None and found.changed_ns == _changed_ns(paths) else None

    def keep(self, key: Hashable, stats: TensorStats, paths: Collection[str]) -> None:
        """Keep the statistics of what lies at these paths, unless that may change without a later time of the file."""
        changed_ns = _changed_ns(paths)
        if changed_ns is None or not all(map(self._is_settled, paths)):
            return
        with self._lock:
            self._forget(key)
            self._known[key] = _Kept(stats, changed_ns)
            self._nbytes += _nbytes_of(stats)
            while self._nbytes > MAX_NBYTES:
                self._forget(next(iter(self._known)))

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._known.clear()
            self._nbytes = 0

    def _is_settled(self, path: str) -> bool:
        """Return whether a write to a file would give it another time than it has now."""
        try:
            status = os.stat(path)
        except OSError:
            return False
        now = time.time_ns()
        if abs(now - self._asked_ns) > _SETTLED_NS:
            # Through a map only the first write gives a time; what was mapped since has written just now, if at all.
            self._mapped, self._asked_ns = mapped_for_writing(), now
        return now - status.st_mtime_ns > _SETTLED_NS and status.st_ino not in self._mapped

    def _forget(self, key: Hashable) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._nbytes -= _nbytes_of(known.stats)


KEPT = KeptStats()
"""Those of this process, for as long as it lives."""


class _Kept(NamedTuple):
    """Statistics, and when the system last changed anything of the files: also what sets their time back does."""

    stats: TensorStats
    changed_ns: tuple[int, ...]


def _changed_ns(paths: Collection[str]) -> tuple[int, ...] | None:
    try:
        return tuple(os.stat(path).st_ctime_ns for path in sorted(paths))
    except OSError:
        return None


def _nbytes_of(stats: TensorStats) -> int:
    distribution = stats.distribution
    return 1000 + (distribution.keys.nbytes + distribution.counts.nbytes if distribution is not None else 0)

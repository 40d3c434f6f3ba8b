"""Whether this process began as a copy of another one, as the workers of a DataLoader do."""

from __future__ import annotations

import os
from pathlib import Path

_PF_FORKNOEXEC = 0x40
"""The flag of a process that was forked and runs the same program (`include/linux/sched.h`)."""


def _has_begun_so() -> bool:
    try:
        return bool(int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[6]) & _PF_FORKNOEXEC)
    except (OSError, ValueError, IndexError):
        return False


class _Process:
    """This process; `is_forked` is kept up to date by Python's own forks."""

    def __init__(self) -> None:
        # On Linux also where this module is imported after the fork.
        self.is_forked = _has_begun_so()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._note)

    def _note(self) -> None:
        self.is_forked = True


PROCESS = _Process()

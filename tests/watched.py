"""A look at a file that is watched: what nobody who only looks has any reason to do is noted."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

BEGINS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.", "pty.")
READS = ("pickle.", "mmap.", "socket.", "ctypes.dlopen", "urllib.", "ftplib.", "http.")
WRITES = ("os.mkdir", "os.remove", "os.rename", "os.truncate", "os.chmod", "os.link", "os.symlink", "os.utime")
OURS = {"tensornp", "numpy", "psutil", "numba", "llvmlite", "encodings"}
"""What is imported when it is first needed, by ourselves: no file names it."""


class Watch:
    """Notes what a process does that no look at a file has any reason to do."""

    def __init__(self, folder: Path) -> None:
        self.is_on, self.seen, self._folder = False, [], str(folder)
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event == "import":
            is_noted = args[0].partition(".")[0] not in OURS
        elif event == "open":
            # Files of compiled code are Python's own affair.
            is_noted = isinstance(args[2], int) and bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            is_noted = is_noted and self._folder in str(args[0])
        else:
            is_noted = event.startswith(BEGINS + READS) or (event.startswith(WRITES) and self._folder in str(args))
        if is_noted:
            self.seen.append((event, args[:1]))

"""How a process of a test is kept from taking more memory than is promised."""

from __future__ import annotations

import os
from pathlib import Path


def limit_memory(nbytes: int) -> None:
    """Let this process have so many bytes more than it has."""
    import resource

    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (mapped + nbytes,) * 2)

"""What the memory of this process is mapped to: a file, a device, or nothing but memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Mapping(NamedTuple):
    """One line of the memory map of the process."""

    low: int
    high: int
    is_readable: bool
    is_writeable: bool
    is_file: bool
    is_device: bool


def mappings(low: int, high: int) -> Iterator[Mapping]:
    """Yield the mappings between two addresses, by ``/proc/self/maps`` (Linux; ``man 5 proc_pid_maps``).

    They are listed by their addresses, and each takes 2 µs, of which libraries bring hundreds: those that lie above are
    not asked for. Elsewhere there are none.
    """
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                start, _, rest = line.partition("-")
                end, _, facts = rest.partition(" ")
                bottom, top = int(start, 16), int(end, 16)
                if top <= low:
                    continue
                if bottom >= high:
                    return
                flags, _, _, inode, *path = facts.split(maxsplit=4)
                is_device = bool(path) and path[0].startswith("/dev/") and not path[0].startswith("/dev/shm/")
                yield Mapping(bottom, top, "r" in flags, "w" in flags, inode != "0" and not is_device, is_device)
    except OSError:
        return

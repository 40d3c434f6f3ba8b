"""Which files this process has mapped into memory to write to them."""

from __future__ import annotations


def mapped_for_writing() -> frozenset[int]:
    """Return the inodes of files that are mapped shared and writable; none where the system does not tell."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
            # The address, the rights, the offset, the device, the inode, and the path.
            fields = [line.split(maxsplit=5) for line in lines]
        return frozenset(int(one[4]) for one in fields if one[1].startswith("rw") and one[1].endswith("s"))
    except (OSError, ValueError, IndexError):
        return frozenset()

"""Which of several pieces of a file lie over each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def overlapping(spans: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Yield the names whose bytes, from an offset on so many, are in part those of one before."""
    end = 0
    for name, (offset, nbytes) in sorted(spans.items(), key=lambda pair: pair[1]):
        if nbytes and offset < end:
            yield name
        end = max(end, offset + nbytes)

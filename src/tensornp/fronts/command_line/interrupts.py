"""Ctrl-C, by which the system ends the command at once, but for a scan, which tells what it has finished.

Python's own handler raises in whatever runs; in a callback of an import the error is lost, and a lock stays behind.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensornp.models.scan.progress import Progress

INTERRUPTED = 128 + signal.SIGINT
"""The status that a shell tells of what Ctrl-C has ended."""


def leave_to_the_system() -> None:
    """Have the system handle it from now on, unless it is ignored, as of what runs in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def raising(told: Progress | None) -> Iterator[Progress]:
    """Return what is to be told of the progress in the block, where Ctrl-C raises once something is finished."""
    is_left = signal.getsignal(signal.SIGINT) is signal.SIG_DFL

    def tell(done: int, total: int) -> object:
        if is_left:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return told(done, total) if told is not None else None

    try:
        yield tell
    finally:
        if is_left:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_as_interrupted() -> int:
    """End as what Ctrl-C ends, so that a loop of the shell ends with it."""
    with suppress(AttributeError, OSError):
        sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.raise_signal(signal.SIGINT)
    return INTERRUPTED

"""Locks, and what else is taken before a block and given back after it."""

from __future__ import annotations

import signal
import threading

import pytest
from child import in_fork

from tensornp.core.lowlevel.locks import Held, Lock


def can_be_taken(lock: Lock) -> bool:
    """Return whether another thread gets it."""
    found: list[bool] = []

    def ask() -> None:
        if lock.acquire(blocking=False):
            lock.release()
            found.append(True)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return bool(found)


def test_it_is_taken_in_a_block_and_open_after_it():
    """More than once by one thread, and whatever ends the block."""
    lock = Lock()
    with pytest.raises(ValueError, match="mine"), lock, lock:
        assert not can_be_taken(lock)
        raise ValueError("mine")
    assert can_be_taken(lock)


def test_what_was_not_taken_is_not_given_back():
    """An error comes out as it is."""
    given: list[int] = []
    with pytest.raises(IndexError), Held([].pop, lambda: given.append(1)):
        pass
    assert not given


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no such timer")
@in_fork
def test_ctrl_c_at_any_moment_leaves_it_open():
    """Since Python 3.14 it may come after a lock of Python's is taken, and before its block begins."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    lock, num_hits = Lock(), 0
    for i in range(500):
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + i % 97))
            while True:
                with lock:
                    pass
        except KeyboardInterrupt:
            num_hits += 1
        assert can_be_taken(lock), i
    assert num_hits == 500

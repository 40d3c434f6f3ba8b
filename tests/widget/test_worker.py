"""The one thread that does what a page asks for."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tensornp.widget.worker import Worker


def _raises(error: BaseException) -> Callable[[], None]:
    def task() -> None:
        raise error

    return task


@pytest.mark.parametrize("error", [ValueError(), SystemExit(), KeyboardInterrupt(), GeneratorExit()])
def test_a_task_that_raises_ends_no_other(error, caplog):
    """Whatever it raises: the log says so, and what is asked for later is done."""
    worker, done = Worker(), threading.Event()
    worker.do("first", _raises(error))
    worker.do("second", done.set)
    assert done.wait(60)
    assert "a request of a page failed" in caplog.text

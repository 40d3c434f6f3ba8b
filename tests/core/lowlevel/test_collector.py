"""The garbage collector is held back in a block, and is afterwards what it was."""

from __future__ import annotations

import gc
import os
import threading

import pytest
from child import in_fork

from tensornp.core.lowlevel.collector import uncollected


@pytest.mark.parametrize("is_enabled", [True, False])
def test_nothing_is_collected_in_the_block_and_the_state_returns(is_enabled):
    """Also of who has turned it off, within another block, and when one ends by an error."""
    if not is_enabled:
        gc.disable()
    try:
        with pytest.raises(ValueError, match="mine"), uncollected(), uncollected():
            assert not gc.isenabled()
            raise ValueError("mine")
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system copies no process")
@in_fork
def test_a_copy_of_the_process_collects():
    """Where another thread held it back, which does not live there to end that."""
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with uncollected():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    child = os.fork()
    if not child:
        os._exit(int(not gc.isenabled()))
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()
    assert os.waitpid(child, 0)[1] == 0

"""The garbage collector is held back in a block, and is afterwards what it was."""

from __future__ import annotations

import gc

import pytest

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

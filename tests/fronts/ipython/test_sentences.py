"""Bad input gets one sentence: what it is, and the line that does what was meant; no wall of our source."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from IPython.utils.capture import capture_output

import tensornp as tnp


@pytest.fixture
def notebook(shell):
    """A shell with a tensor, an array and a model."""
    shell.namespace.update(w=torch.rand(3, 4), a=np.ones(3), model=torch.nn.Linear(3, 4), np=np, tnp=tnp)
    return shell


def traceback_of(shell, cell, mode="Context"):
    """Return what a failing cell prints, without colours."""
    shell.ip.InteractiveTB.set_mode(mode)
    try:
        with capture_output() as captured:
            assert not shell.ip.run_cell(cell).success
    finally:
        shell.ip.InteractiveTB.set_mode("Context")
    return re.sub(r"\x1b\[[\d;]*m", "", captured.stdout + captured.stderr)


def test_an_error_of_a_function_shows_the_line_of_the_user_and_a_sentence(notebook):
    """The lines of functions in between too, if they are the user's own; Verbose shows ours."""
    shown = traceback_of(notebook, "def mine(m):\n    return tnp.stats(m)\nmine(model)")
    assert "----> 3 mine(model)" in shown
    assert "----> 2     return tnp.stats(m)" in shown
    assert "tensornp/" not in shown.replace("\\", "/")
    assert shown.rstrip().splitlines()[-1].startswith("NotATensorError: stats takes a tensor or an array, not 'Linear'")
    assert "compute.py" in traceback_of(notebook, "tnp.stats(model)", "Verbose")
    assert (
        traceback_of(notebook, "tnp.weights(model)['nope']", "Minimal").strip().startswith("NoSuchWeightError: there")
    )
    assert len(traceback_of(notebook, "tnp.weights('/nowhere/x.pt')").splitlines()) < 10


def test_an_error_of_the_user_s_own_code_stays_in_view(notebook):
    """It may be the cause of ours; one of a library, which our sentence has told, is left out."""
    shown = traceback_of(
        notebook, "class Odd:\n    def __tensornp__(self):\n        raise RuntimeError('mine')\ntnp.to_numpy(Odd())"
    )
    assert "RuntimeError: mine" in shown
    assert "raise RuntimeError('mine')" in shown
    assert "UnsupportedTensorError: " in shown
    with pytest.raises(tnp.TensornpError) as raised:
        tnp.weights("/nowhere/x.pt")
    error = raised.value
    before = error.__cause__, error.__context__, error.__suppress_context__
    error._render_traceback_()
    assert (error.__cause__, error.__context__, error.__suppress_context__) == before

"""Faults that were hunted down in cells: each has left the promise that it broke."""

from __future__ import annotations

import gc
import weakref

import pytest
from IPython.utils.capture import capture_output


@pytest.mark.parametrize(
    "magic",
    [
        "%tensorwatch w nosuch",
        "%tensorwatch w w+1",
        "%tonumpy -d nosuch w",
        "%tonumpy --copy --share w",
        "%totensor -o name w",
        "%%tonumpy nosuch\nw",
    ],
)
def test_a_usage_error_keeps_no_tensor_alive(shell, magic):
    """Python keeps the last error with its frames, so none of them may hold what the line named."""
    shell.run("w = torch.zeros(4)")
    gone = weakref.ref(shell.namespace["w"])
    shell.fail(magic)
    shell.ip.displayhook.flush()
    shell.run("del w")
    gc.collect()
    assert gone() is None


def test_a_name_is_watched_once_however_often_it_is_given(shell):
    """And one tensor is not called tensors."""
    shell.run("w = torch.zeros(4)")
    shell.run("%tensorwatch w w")
    assert shell.printed == "watching w (1 tensor or array) after each cell\n"
    shell.run("%tensorwatch --off w w")
    assert shell.printed == "no longer watched: w\n"


def test_an_array_of_objects_is_not_said_to_be_watched(shell):
    """Nothing of it is read, so no report would ever come."""
    shell.run("import numpy as np; objects = np.array([1, 'a'], dtype=object)")
    assert shell.fail("%tensorwatch objects").startswith("objects is an array of objects")


def test_a_function_that_raises_anew_is_called_once_in_the_table(shell):
    """It stands in two tracebacks, with the very same locals."""
    code = """
import torch
def fails():
    mine = torch.zeros(1000)
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise KeyError("anew") from error
fails()
"""
    with capture_output():
        shell.ip.run_cell(code)
        shell.ip.run_cell("%tensors")
    shell.run("%tensors")
    table = shell.displayed[0]["text/plain"]
    assert "mine in fails() of the last traceback" in table
    assert "call 2" not in table


def test_a_card_does_not_name_itself_after_another_statement(shell):
    """The last expression of a line is what is shown."""
    with capture_output() as captured:
        shell.ip.run_cell("import torch; w = torch.zeros(3); other = w; w", store_history=True)
    lines = captured.stdout.splitlines()
    assert [line for line in lines if line.startswith("same memory")] == ["same memory as other"]

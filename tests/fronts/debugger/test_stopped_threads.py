"""In a program that debugpy has stopped, gradients are looked at: neither its threads nor those it stopped run."""

from __future__ import annotations

from dap import stopped

PROGRAM = """
import threading
import torch
import tensornp as tnp
p = torch.ones(2, requires_grad=True)
p.sum().backward()
{begin}
breakpoint()
{end}
"""
LOOK = "tnp.inspect(p).has_grad"


def test_the_threads_of_the_debugger_run_no_code_of_the_users(tmp_path):
    """It hides them from Python's list of threads."""
    with stopped(PROGRAM.format(begin="", end="pass"), tmp_path) as debugger:
        assert debugger.evaluate(LOOK, "watch") == "True"


def test_a_thread_that_it_has_stopped_runs_none(tmp_path):
    begin = "end = threading.Event()\ndef wait():\n    while not end.wait(0.001): pass\n"
    begin += "other = threading.Thread(target=wait)\nother.start()"
    with stopped(PROGRAM.format(begin=begin, end="end.set()\nother.join()"), tmp_path) as debugger:
        assert debugger.evaluate(LOOK, "watch") == "True"

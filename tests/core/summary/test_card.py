"""The card of a tensor, before it is text or HTML: what it takes to gather it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
from collections import Counter
from pathlib import Path
import torch, tensornp
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions

home, found = str(Path(tensornp.__file__).parent), {}
for name in ("float32", "float64", "float16", "int64", "bool"):
    t, calls = torch.arange(10).to(getattr(torch, name)), Counter()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(home):
            calls[frame.f_code.co_qualname] += 1

    # What is found out once for a class or a dtype is known by then.
    assert summarize(t, DisplayOptions()).stats.count == 10
    sys.setprofile(note)
    summarize(t, DisplayOptions())
    sys.setprofile(None)
    found[name] = calls
print(json.dumps(found))
"""
MAX_CALLS = 180


@pytest.mark.slow
def test_a_card_asks_nothing_twice_and_takes_few_calls():
    """Figures are of what was inspected, and read as was planned; in a process in which nothing else has run."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=600)
    for name, calls in json.loads(done.stdout).items():
        assert calls["inspect"] == calls["decide"] == 1, name
        assert sum(calls.values()) <= MAX_CALLS, (name, calls)

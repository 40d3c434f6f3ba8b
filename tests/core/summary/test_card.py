"""The card of a tensor, before it is text or HTML: what it takes to gather it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

import tensornp
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions

_HOME = str(Path(tensornp.__file__).parent)
MAX_CALLS = 350


def own_calls(function, *arguments):
    """Return how often each function of ours is entered, by its name; comprehensions count, where Python has frames."""
    calls = Counter()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(_HOME):
            calls[frame.f_code.co_qualname] += 1

    # What is found out once for a class or a dtype is known by then.
    function(*arguments)
    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.bool])
def test_a_card_asks_nothing_twice_and_takes_few_calls(dtype):
    """Figures are of what was inspected, and read as was planned."""
    t = torch.arange(10).to(dtype)
    calls = own_calls(summarize, t, DisplayOptions())
    assert summarize(t, DisplayOptions()).stats.count == 10
    assert calls["inspect"] == calls["decide"] == 1
    assert sum(calls.values()) <= MAX_CALLS, calls.most_common()

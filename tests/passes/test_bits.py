"""Each promise over all programs: what is followed computes the same bits, and nothing is left behind."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from programs import PROGRAMS, in_a_mode, no_follow, state_after

import tensornp as tnp

FOLLOWS: dict[str, Callable[[Any], Any]] = {
    "all": lambda _: tnp.follow(),
    "bound": tnp.follow,
    "without gradients": lambda _: tnp.follow(grads=False),
    "operators": lambda _: tnp.follow(level="operators"),
    "only": lambda _: tnp.follow(level="operators", only="*"),
}
UNSEEN = {
    "bound": ("compiled",),
    "all": ("thread", "threads"),
    "without gradients": ("thread", "threads"),
    "operators": ("thread", "threads"),
    "only": ("thread", "threads"),
}
"""Programs of which no call is seen: in another thread where no model is named, of what was made of a named one."""
STOPS = (("return", 0), (ValueError, 1), (KeyboardInterrupt, 2))
"""Each program ends in one of these ways, after so many pauses."""
BY_OTHER_OPERATORS = ("nodes", "tensors")
"""What is as it is under a mode that does nothing: the names of nodes, and the version of a new gradient."""
expected = functools.cache(lambda follow, name, *ending: state_after(PROGRAMS[name], follow, *ending)[0])


def check(found: dict[str, Any], follow: str, name: str, *ending: Any) -> None:
    """Check that what is left is what the program leaves by itself."""
    plain = expected(no_follow, name, *ending)
    if follow not in ("operators", "only"):
        assert found == plain
        return
    assert follow == "only" or found == expected(in_a_mode, name, *ending)
    for fact, value in plain.items():
        assert fact in BY_OTHER_OPERATORS or found[fact] == value, fact
    for mine, theirs in zip(found["tensors"], plain["tensors"], strict=True):
        assert mine[:4] == theirs[:4]
        assert (mine[4] is None) is (theirs[4] is None)
        assert mine[4] is None or (mine[4][0], mine[4][2]) == (theirs[4][0], theirs[4][2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "follow"),
    [
        *zip(PROGRAMS, itertools.cycle(["all", "bound", "without gradients", "only"])),
        *((name, "operators") for name in PROGRAMS),
    ],
)
def test_a_program_that_is_followed_leaves_the_same_bits(name, follow):
    """Losses, parameters, gradients, buffers, optimizer, scaler, RNG, graph, hooks and modes."""
    found, runs = state_after(PROGRAMS[name], FOLLOWS[follow])
    check(found, follow, name)
    for run in runs:
        is_seen = not name.endswith(UNSEEN.get(follow, ()))
        assert bool(run.calls) is is_seen
        assert run.complete or not is_seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stop", "stop_at", "follow"),
    [
        (name, *stop, follow)
        for name, stop, follow in zip(PROGRAMS, itertools.cycle(STOPS), itertools.cycle(["all", "operators", "only"]))
    ],
)
def test_a_block_that_ends_in_its_middle_leaves_the_same_bits(name, stop, stop_at, follow):
    """After the forward, after the backward, after the step: by return, by an error, by Ctrl-C."""
    found, runs = state_after(PROGRAMS[name], FOLLOWS[follow], stop, stop_at)
    check(found, follow, name, stop, stop_at)
    for run in runs:
        assert run.is_over
        assert run._record.notes == () or not run.calls
    if found["num pauses"] > stop_at and stop != "return":
        assert any(run._record.error == stop.__name__ for run in runs)

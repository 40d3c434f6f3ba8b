"""Each promise over all programs: what is followed computes the same bits, and nothing is left behind."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from programs import INDUCTOR, PROGRAMS, no_follow, state_after

import tensornp as tnp

FOLLOWS: dict[str, Callable[[Any], Any]] = {
    "all": lambda _: tnp.follow(),
    "bound": tnp.follow,
    "without gradients": lambda _: tnp.follow(grads=False),
}
UNSEEN = {
    "bound": ("compiled",),
    "all": ("thread", "threads"),
    "without gradients": ("thread", "threads"),
}
"""Programs of which no call is seen: in another thread where no model is named, of what was made of a named one."""
expected = functools.cache(lambda name, *ending: state_after(PROGRAMS[name], no_follow, *ending)[0])


@pytest.mark.parametrize("follow", FOLLOWS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_followed_leaves_the_same_bits(name, follow):
    """Losses, parameters, gradients, buffers, optimizer, scaler, RNG, graph, hooks and modes."""
    found, runs = state_after(PROGRAMS[name], FOLLOWS[follow])
    assert found == expected(name)
    for run in runs:
        assert run.record.notes == ()
        assert run.complete
        assert bool(run.calls) is not name.endswith(UNSEEN[follow])
        assert tnp.card(run).text


@pytest.mark.parametrize(("stop", "stop_at"), [("return", 0), (ValueError, 1), (KeyboardInterrupt, 2)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_block_that_ends_in_its_middle_leaves_the_same_bits(name, stop, stop_at):
    """After the forward, after the backward, after the step: by return, by an error, by Ctrl-C."""
    found, runs = state_after(PROGRAMS[name], FOLLOWS["all"], stop, stop_at)
    assert found == expected(name, stop, stop_at)
    for run in runs:
        assert run.is_over
        assert run.record.notes == ()
        assert tnp.card(run).text
    if found["num pauses"] > stop_at and stop != "return":
        assert any(run.record.error == stop.__name__ for run in runs)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a compiler")
@pytest.mark.parametrize("follow", FOLLOWS)
def test_what_inductor_compiles_leaves_the_same_bits(follow):
    """Compiled in the first block, and called in the others."""
    plain, _ = state_after(INDUCTOR, no_follow)
    found, runs = state_after(INDUCTOR, FOLLOWS[follow])
    assert found == plain
    assert all(bool(run.calls) is (follow != "bound") for run in runs)

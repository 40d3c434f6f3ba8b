"""Objects that modules take and return: what they hold is looked at, and of what hides it nothing is claimed."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

import tensornp as tnp

NAN = float("nan")


class State:
    def __init__(self, h: Any) -> None:
        self.h = h

    @property
    def told(self) -> None:
        raise AssertionError


class Cell(nn.Module):
    """Computes with what `read` finds in its state."""

    def __init__(self, read: Any = lambda state: state.h) -> None:
        super().__init__()
        self.linear, self.read = nn.Linear(4, 4), read

    def forward(self, x: torch.Tensor, state: Any) -> torch.Tensor:
        return torch.tanh(self.linear(x) + self.read(state))


class Encoder(nn.Module):
    """Gives a distribution, or what `put` makes of the same."""

    def __init__(self, scale: float = NAN, put: Any = lambda given: given) -> None:
        super().__init__()
        self.linear, self.scale, self.put = nn.Linear(4, 4), scale, put

    def forward(self, x: torch.Tensor) -> Any:
        mean = self.linear(x)
        return self.put(Normal(mean, torch.full_like(mean, self.scale), validate_args=False))


def hidden(given: Any) -> Any:
    """Return an iterator, which refers to what it gives and has no attribute."""
    return iter([given])


def test_what_a_distribution_holds_was_given_by_the_module_that_returned_it():
    encoder, decoder, x = Encoder(), nn.Linear(4, 2), torch.ones(3, 4)
    with tnp.follow() as run:
        given = encoder(x)
        decoder(given.rsample())
        kl = kl_divergence(given, Normal(0.0, 1.0)).mean()
        kl.backward()
    assert [(one.path, one.has_nan) for one in run["encoder"].outputs] == [(".loc", False), (".scale", True)]
    assert run.first("nan").name == "encoder"
    assert run["encoder.linear"].outputs[0].grad is not None


def test_what_lies_in_a_state_came_with_the_call():
    cell, x = Cell(), torch.ones(1, 4)
    with tnp.follow() as run:
        cell(x, state=State(torch.full((1, 4), NAN)))
    assert run.first("nan").sentence.startswith("the input ['state'].h held NaN when Cell was called")
    runs = []
    for start in (torch.zeros(1, 4), torch.ones(1, 4)):
        with tnp.follow() as run:
            cell(x, State(start))
        runs.append(run)
    assert "its inputs had differed when Cell was called" in tnp.card(tnp.compare(*runs)).text


@pytest.mark.parametrize("hide", [hidden, np.asarray, lambda given: State(given.untyped_storage())])
def test_no_module_is_accused_of_what_lies_where_nobody_sees_it(hide):
    state = hide(torch.full((1, 4), NAN))
    with tnp.follow() as run:
        Cell(lambda _: torch.full((1, 4), NAN))(torch.ones(1, 4), state)
    origin = run.first("nan")
    assert origin.inputs_finite is None
    assert origin.sentence.startswith("the first NaN that was read came out of Cell, test_objects.py:")
    assert origin.sentence.endswith("`: of what it got or called, not all could be read")
    assert run.calls[0].inputs[1].note.endswith(": not looked into")


def test_a_huge_object_is_looked_at_up_to_a_bound_and_said_to_be_unread():
    state = State([torch.ones(1, 4) for _ in range(100)])
    state.log = logging.getLogger()
    with tnp.follow() as run:
        Cell(lambda state: state.h[0])(torch.ones(1, 4), state)
    *_, last = run.calls[0].inputs
    assert len(run.calls[0].inputs) == 66 and last.note == "State: not looked into"

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


def test_objects_in_objects_are_looked_at_and_those_that_refer_to_each_other_once():
    inner = State({"keys": [torch.full((1, 4), NAN)]})
    outer = State(inner)
    inner.back = outer
    with tnp.follow() as run:
        Cell(lambda state: state.h.h["keys"][0])(torch.ones(1, 4), outer)
    assert [one.path for one in run.calls[0].inputs] == ["[0]", "[1].h.h['keys'][0]"]
    assert run.first("nan").path == "[1].h.h['keys'][0]"


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


def test_what_a_module_gave_unseen_is_not_said_to_be_finite():
    encoder, decoder, x = Encoder(put=hidden), nn.Linear(4, 2), torch.ones(3, 4)
    with tnp.follow() as calm:
        encoder(x)
    assert tnp.card(calm).text.startswith("no NaN and no infinity in what could be read")
    assert calm.problems == []
    with tnp.follow() as run:
        kl = kl_divergence(next(encoder(x)), Normal(0.0, 1.0)).mean()
    assert kl.isnan()
    assert run.first("nan").sentence == "`kl` holds NaN, and nothing did that could be read of what modules gave"
    with tnp.follow() as run:
        decoder(next(encoder(x)).rsample())
    assert "it came with the call or from what could not be read, or was born after encoder" in run.first().sentence


def test_the_code_of_a_module_is_not_accused_where_a_call_in_it_gave_what_nobody_sees():
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = Encoder(put=hidden), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.decoder(next(self.encoder(x)).rsample())

    with tnp.follow() as run:
        Both()(torch.ones(3, 4))
    assert run.first().sentence.startswith("the first NaN that was read is what decoder got in Both")
    assert "not all could be read" in run.first().sentence


def test_what_holds_no_tensor_costs_no_statement():
    given = (
        slice(2),
        torch.float32,
        torch.Generator(),
        np.float32(1),
        np.ones(2, int),
        len,
        nn.Linear,
        range(3),
        State(1),
    )
    with tnp.follow() as run:
        Cell(lambda _: torch.full((1, 4), NAN))(torch.ones(1, 4), given)
    assert len(run.calls[0].inputs) == 1
    assert "its inputs and weights were finite" in run.first().sentence


def test_a_huge_object_is_looked_at_up_to_a_bound_and_said_to_be_unread():
    state = State([torch.ones(1, 4) for _ in range(100)])
    state.log = logging.getLogger()
    with tnp.follow() as run:
        Cell(lambda state: state.h[0])(torch.ones(1, 4), state)
    *_, last = run.calls[0].inputs
    assert len(run.calls[0].inputs) == 66 and last.note == "State: not looked into"


def test_the_code_of_a_result_is_no_lost_gradient():
    with tnp.follow() as run:
        Encoder(1.0, put=hidden)(torch.ones(3, 4, requires_grad=True))
    assert run.problems == []


class Box:
    """Holds what modules put into it."""


class Puts(nn.Module):
    """Puts a NaN into what it gets, and gives what is finite."""

    def forward(self, x: torch.Tensor, held: Any) -> torch.Tensor:
        """Compute it."""
        poisoned = x * float("nan")
        if isinstance(held, dict):
            held["h"] = poisoned
        else:
            held.h = poisoned
        return x + 1


class Takes(nn.Module):
    """Adds what it finds there."""

    def forward(self, x: torch.Tensor, held: Any) -> torch.Tensor:
        """Compute it."""
        return x + (held["h"] if isinstance(held, dict) else held.h)


class Both(nn.Module):
    """Calls one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.puts, self.takes = Puts(), Takes()

    def forward(self, x: torch.Tensor, held: Any) -> torch.Tensor:
        """Compute it."""
        return self.takes(self.puts(x, held), held)


@pytest.mark.parametrize("make", [dict, Box])
def test_what_a_call_puts_into_its_argument_is_not_said_to_be_born_outside(make: type):
    """Nor in the code around it."""
    puts, takes, held, x = Puts(), Takes(), make(), torch.ones(3)
    with tnp.follow() as run:
        takes(puts(x, held), held)
    assert run.problems[0].endswith("it came with the call, or what ran before has put it there")
    both, held = Both(), make()
    with tnp.follow() as run:
        both(x, held)
    assert "that was read" in run.problems[0] and "born" not in run.problems[0]


def test_an_object_is_looked_into_with_the_outermost_call_that_gets_it():
    """Each call inside says that it was not looked into again; one that holds no tensor is."""
    held, both = Box(), Both()
    held.h = torch.ones(3)
    both.puts = Calling()
    with tnp.follow(both) as run:
        both(torch.ones(3), held)
    outer, inner = run["both.takes"], run[0]
    assert [one.path for one in inner.inputs] == ["[0]", "[1].h"]
    assert [one.note for one in outer.inputs][1:] == ["Box: not looked into"]


def test_functions_over_variables_and_methods_are_not_said_to_be_finite():
    """Either may use a tensor that nobody sees; a function alone uses none."""

    class Calls(nn.Module):
        def forward(self, x: torch.Tensor, made: Any) -> torch.Tensor:
            return x * made()

    holder, nan = Box(), torch.tensor(float("nan"))
    holder.nan = nan
    Box.get = lambda self: self.nan
    for made in (lambda: nan, holder.get):
        with tnp.follow() as run:
            Calls()(torch.ones(3), made)
        assert "not all could be read" in run.problems[0]
    del Box.get
    with tnp.follow() as run:
        Calls()(torch.ones(3), float)
    assert not run.problems or "not all could be read" not in run.problems[0]


def test_a_pass_looks_into_objects_for_a_bounded_time():
    """Of more than so many values, no more is looked at, and that is said."""
    many = [Box() for _ in range(20_000)]
    module = Calling()
    with tnp.follow(module) as run:
        for _ in range(5):
            module(torch.ones(3), many)
    assert all(call.inputs[-1].note.endswith("not looked into") and len(call.inputs) < 5 for call in run)


class Calling(nn.Module):
    """Uses its first argument."""

    def forward(self, x: torch.Tensor, many: Any) -> torch.Tensor:
        """Compute it."""
        return x + 1


INF = float("inf")
KEPT = {
    "bound": lambda: torch.tensor(INF),
    "greatest": lambda: torch.full((3, 1), -INF),
    "mask": lambda: torch.full((3, 3), -INF).triu(1),
    "bounds": lambda: torch.tensor([-INF, INF]),
}


class Keeping(nn.Module):
    """Gives an object with its result and what `kept` makes of that."""

    def __init__(self, kept: Any) -> None:
        super().__init__()
        self.linear, self.kept = nn.Linear(4, 4), kept

    def forward(self, x: torch.Tensor) -> State:
        state = State(self.linear(x))
        state.kept = self.kept(state.h)
        return state


@pytest.mark.parametrize("level", ["modules", "operators"])
@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
def test_infinities_that_an_object_keeps_are_no_finding(kept: Any, level: str):
    """As those of a mask that is an argument: what holds them came in so, or was given so, and a NaN is one."""
    giver, taker, given = Keeping(lambda _: kept()), Cell(), State(torch.ones(3, 4))
    given.kept = kept()
    with tnp.follow(level=level) as run:
        taker(torch.ones(3, 4), giver(torch.ones(3, 4)))
        taker(torch.ones(3, 4), given)
    assert not run.problems and run.first("nonfinite") is None
    assert "no NaN, and no infinity but" in tnp.card(run).text
    given.kept = torch.tensor(NAN)
    with tnp.follow(level=level) as run:
        taker(torch.ones(3, 4), given)
    assert run.problems[0].startswith("the input [1].kept held NaN when Cell was called")


def test_infinities_that_are_computed_are_found_in_an_object():
    """And what an object that came in has them in, where that was computed with."""
    with tnp.follow() as run:
        Keeping(lambda h: (h.sum() * 1e30).square())(torch.ones(3, 4))
    assert run.problems[0].startswith("the first Inf was born in Keeping")
    with tnp.follow() as run:
        Handing()(State(torch.full((3, 4), INF)))
    assert "before, the input [0].h held Inf when Handing was called" in run.problems[0]


class Handing(nn.Module):
    """Hands on what its state holds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, state: State) -> torch.Tensor:
        return self.linear(state.h)


class Scaled(nn.Module):
    """Gives an object with a scale, that `put` makes of what `inner` gives."""

    def __init__(self, put: Any, inner: nn.Module) -> None:
        super().__init__()
        self.put, self.inner = put, inner

    def forward(self, x: torch.Tensor) -> State:
        return State(self.put(self.inner(x)))


def _softplus(h: torch.Tensor) -> torch.Tensor:
    return nn.functional.softplus(h)


def _root(h: torch.Tensor) -> torch.Tensor:
    return (h * 0).sqrt()


@pytest.mark.parametrize(
    ("encoder", "last", "says"),
    [
        (Scaled(_softplus, nn.Linear(4, 4)), _root, "born in the loss or its backward, after Scaled, the last call"),
        (Scaled(_root, nn.Linear(4, 4)), torch.clone, "NaN entered the gradients in Scaled, after inner:"),
        (
            Scaled(lambda state: _root(state.h), Scaled(_softplus, nn.Linear(4, 4))),
            torch.clone,
            "NaN entered the gradients in Scaled, after inner:",
        ),
        (
            Scaled(lambda state: state.h, Scaled(_root, nn.Linear(4, 4))),
            torch.clone,
            "NaN entered the gradients in inner, after inner:",
        ),
    ],
)
def test_a_backward_is_accused_where_it_was_born_before_or_after_an_object_was_given(
    encoder: nn.Module, last: Any, says: str
):
    with tnp.follow() as run:
        last(encoder(torch.ones(3, 4)).h).sum().backward()
    assert says in run.problems[0]

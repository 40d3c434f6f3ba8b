"""What `only` and `keep` take: the names that a card shows; and what the card advises works."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn

import tensornp as tnp

X = torch.ones(2, 4)


class Odd(nn.Module):
    """A part that gives a NaN, in its own code."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.l(x) * 0
        return h / h


def _two(**options: Any) -> tnp.FollowedPass:
    first, second = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), Odd()
    with tnp.follow(**options) as run:
        second(first(X))
    return run


def _given(**options: Any) -> tnp.FollowedPass:
    first, second = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), Odd()
    with tnp.follow(first, second, **options) as run:
        second(first(X))
    return run


def _alone(**options: Any) -> tnp.FollowedPass:
    model = nn.Sequential(nn.Linear(4, 4), Odd())
    with tnp.follow(**options) as run:
        model(X)
    return run


def _nameless(**options: Any) -> tnp.FollowedPass:
    with tnp.follow(**options) as run:
        Odd()(nn.Sequential(nn.Linear(4, 4))(nn.Sequential(nn.Linear(4, 4))(X)))
    return run


def _made_inside(**options: Any) -> tnp.FollowedPass:
    with tnp.follow(**options) as run:
        first, second = nn.Linear(4, 4), Odd()
        second(first(X))
    return run


def _fast(**options: Any) -> tnp.FollowedPass:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1).eval()
    with torch.no_grad():
        model.layers[0].linear1.bias.fill_(3e38)
        model.layers[0].linear2.weight.fill_(3e38)
    with torch.no_grad(), tnp.follow(**options) as run:
        model(X[None])
    return run


_PROGRAMS = _two, _given, _alone, _nameless, _made_inside, _fast


@pytest.mark.parametrize("program", _PROGRAMS)
def test_each_name_that_a_card_shows_is_taken(program: Callable[..., tnp.FollowedPass]):
    """And each expression; whatever stands before it."""
    run = program()
    for call in run.calls:
        for name in filter(None, (call.title, call.code)):
            again = program(keep=name)
            kept = {one.index for one in again.calls if one.outputs[0].tensor is not None}
            assert call.index in kept and not again._record.notes, name
            # Of models without a name, that of the class is one.
            assert kept == {call.index, *(one.index for one in run.calls if one.class_name == name and not one.depth)}


@pytest.mark.parametrize("program", _PROGRAMS)
def test_what_a_card_advises_names_the_operator(program: Callable[..., tnp.FollowedPass]):
    """In the same program."""
    run = program()
    told = re.search(r"^%%follow --operators(?: --only (\S+))? names the operator", tnp.card(run).text, re.MULTILINE)
    assert told is not None
    again = program(level="operators", only=told[1])
    assert again.first("nan").operator and not again._record.notes


@pytest.mark.parametrize("name", ["first.0", "first[0]", "first*0", "0"])
def test_a_module_is_named_with_its_model_or_without(name: str):
    """By an expression too, in which a bracket is no pattern."""
    (call,) = [one for one in _two(keep=name).calls if one.outputs[0].tensor is not None]
    assert call.name == "first.0"


def test_a_model_has_one_name_in_two_passes():
    """Also where a fast path calls no module that has weights."""
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0), 1)
    runs = []
    for is_fast in (False, True):
        model.train(not is_fast)
        with torch.no_grad() if is_fast else nullcontext(), tnp.follow() as run:
            model(X[None])
        runs.append(run)
    assert runs[1]["layers.0"].name == "layers.0"
    assert tnp.compare(*runs).num_calls == 2

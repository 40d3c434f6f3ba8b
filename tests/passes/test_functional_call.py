"""Gradients of what `torch.func.functional_call` puts in the place of parameters are told to be its own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tensornp as tnp

WORDS = "the gradients of what took their place in a functional call"


def called(model: nn.Module, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return a loss of a model with other parameters."""
    out: torch.Tensor = torch.func.functional_call(model, parameters, (torch.ones(2, 3),))
    return out.square().mean()


@pytest.mark.parametrize(
    "made_of",
    [lambda one: one * 2, lambda one: one.detach().requires_grad_(), lambda one: nn.Parameter(one.detach().clone())],
    ids=["computed", "leaf", "another's"],
)
def test_what_takes_the_place_of_parameters_is_named(made_of):
    """It is no gradient of theirs."""
    model = nn.Linear(3, 2)
    with tnp.follow(model) as run:
        called(model, {name: made_of(one) for name, one in model.named_parameters()}).backward()
    assert any(WORDS in one for one in run.problems)
    assert {one.note for one in run._record.grads} == {"of what took its place in a functional call"}
    assert not any("got no gradient" in one for one in run.problems)


@pytest.mark.parametrize("is_first", [True, False])
def test_gradients_of_parameters_are_their_own_beside_it(is_first):
    """A step of an inner loop, and one through it: whichever call came first."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    own = dict(model.named_parameters())
    with tnp.follow(model) as run:
        if is_first:
            model(torch.ones(2, 3)).sum().backward()
        inner = called(model, own)
        taken = torch.autograd.grad(inner, list(own.values()), create_graph=True)
        fast = {name: one - 0.1 * grad for (name, one), grad in zip(own.items(), taken, strict=True)}
        loss = called(model, fast)
        model.zero_grad()
        loss.backward()
    assert {name: one.norm for name, one in run.grads.items()} == pytest.approx(
        {name: one.grad.norm().item() for name, one in own.items()}, rel=1e-5
    )
    assert not any(WORDS in one for one in run.problems)


def test_what_took_a_place_and_got_no_gradient_is_a_parameter_without_one():
    """Nothing else is known of it."""
    model = nn.Linear(3, 2)
    with tnp.follow(model) as run:
        called(model, {"weight": model.weight * 2, "bias": model.bias.detach().requires_grad_()}).detach()
        model(torch.ones(2, 3))[:, :0].sum().backward()
        called(model, {"weight": model.weight * 2, "bias": torch.zeros(2)}).backward()
    assert {one.name: one.note for one in run._record.grads} == {"weight": "", "bias": ""}

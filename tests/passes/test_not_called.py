"""Parameters of modules that a model has and does not call: told beside those that were used and got no gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import tensornp as tnp


class Experts(nn.Module):
    """A model that calls its first expert alone, and may compute with the weights of the second by itself."""

    def __init__(self, *, is_second_used: bool = False) -> None:
        super().__init__()
        self.ex = nn.ModuleList(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(3))
        self.head = nn.Linear(3, 2)
        self.is_second_used = is_second_used

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.ex[0](x)
        if self.is_second_used:
            x = self.ex[1][0].forward(x)
        return self.head(x)


TWO = "4 parameters of modules that were not called got no gradient: ex.{1..2}"
ONE = "2 parameters of a module that was not called got no gradient: ex.2"


@pytest.mark.parametrize("is_second_used", [False, True])
@pytest.mark.parametrize("num_steps", [0, 1, 2])
def test_modules_that_were_not_called_are_told_by_their_names(num_steps: int, is_second_used: bool):
    """Those are not that got a gradient all the same, also where that was let go of after a step."""
    model = Experts(is_second_used=is_second_used)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with tnp.follow() as run:
        for _ in range(max(num_steps, 1)):
            model(torch.ones(2, 3)).sum().backward()
            if num_steps:
                optimizer.step()
                optimizer.zero_grad()
    assert (ONE if is_second_used else TWO) in run.problems
    assert run.grads["ex.2.0.weight"] is None and (run.grads["ex.1.0.weight"] is not None) is is_second_used
    assert run.grads["head.bias"] is not None


def of_a_part(model: nn.Module) -> None:
    """Call one expert, which is no part of a model that was called."""
    model.ex[0](torch.ones(2, 3)).sum().backward()


def asked(model: nn.Module) -> None:
    """Ask for gradients, of which none is kept."""
    torch.autograd.grad(model(torch.ones(2, 3)).sum(), [*model.head.parameters(), *model.ex[0].parameters()])


def let_go_of(model: nn.Module) -> None:
    """Let go of all gradients, of which nothing is known then."""
    model(torch.ones(2, 3)).sum().backward()
    model.zero_grad()


@pytest.mark.parametrize(
    "act",
    [lambda model: model(torch.ones(2, 3)), of_a_part, asked, let_go_of],
    ids=["forward", "part", "asked", "gone"],
)
def test_nothing_is_told_of_modules_to_which_no_gradient_could_be_seen_to_come(act: Any):
    model = Experts()
    with tnp.follow(model) as run:
        act(model)
    assert not run.problems, run.problems


def test_what_others_compute_with_is_theirs():
    """A weight that two modules share, the projection of attention; what is frozen gets none on purpose."""
    model = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4), "att": nn.MultiheadAttention(4, 2)})
    model["b"].weight = model["a"].weight
    model["b"].bias.requires_grad_(False)
    model.forward = lambda x: model["a"](model["att"](x, x, x)[0])
    with tnp.follow() as run:
        model(torch.ones(3, 1, 4)).sum().backward()
    assert not any("not called" in one for one in run.problems), run.problems


class Computes(nn.Module):
    """Computes with the weight of a module that it does not call."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return products."""
        return nn.functional.linear(self.body(x), self.head.weight)


def test_a_weight_that_is_computed_with_has_its_gradient():
    """And the bias beside it, which is not, has none: it is not the whole module."""
    model = Computes()
    with tnp.follow() as run:
        model(torch.ones(2, 3)).sum().backward()
    assert run.grads["head.weight"].norm == pytest.approx(model.head.weight.grad.norm().item(), rel=1e-5)
    assert "1 parameter of a module that was not called got no gradient: head.bias" in run.problems


def test_a_nan_in_such_a_gradient_is_found():
    """No module gave it."""
    model = Computes()
    with tnp.follow() as run:
        (model(torch.ones(2, 3)) * torch.nan).sum().backward()
    assert not run.grads["head.weight"].is_finite


def test_a_gradient_of_before_is_listed_as_not_looked_at():
    """Nobody knows that it is of this pass."""
    model = nn.ModuleDict({"body": nn.Linear(3, 2), "head": nn.Linear(3, 2)})
    model["head"].weight.grad = torch.ones(2, 3)

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.parts["body"](x)

    with tnp.follow() as run:
        Whole()(torch.ones(2, 3)).sum().backward()
    notes = {one.name: one.note for one in run._record.grads}
    assert notes["parts.head.weight"] == "of a module that was not called: what its .grad holds was not looked at"
    assert "1 parameter of a module that was not called got no gradient: parts.head.bias" in run.problems

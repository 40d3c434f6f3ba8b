"""Parameters of modules that a model has and does not call: told beside those that were used and got no gradient."""

from __future__ import annotations

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


TWO = "4 parameters of modules that were not called got no gradient: ex.1.0.weight, "
ONE = "2 parameters of a module that was not called got no gradient: ex.2.0.weight, ex.2.0.bias"


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
    assert any(problem.startswith(ONE if is_second_used else TWO) for problem in run.problems)
    assert run.grads["ex.2.0.weight"] is None and (run.grads["ex.1.0.weight"] is not None) is is_second_used
    assert run.grads["head.bias"] is not None


class Computes(nn.Module):
    """Computes with the weight of a module that it does not call."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return products."""
        return nn.functional.linear(self.body(x), self.head.weight)


def test_a_nan_in_such_a_gradient_is_found():
    """No module gave it."""
    model = Computes()
    with tnp.follow() as run:
        (model(torch.ones(2, 3)) * torch.nan).sum().backward()
    assert not run.grads["head.weight"].is_finite

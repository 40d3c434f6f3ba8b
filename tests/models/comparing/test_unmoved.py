"""Why weights did not move: what is frozen, what has a gradient and no optimizer, and what is known of neither."""

from __future__ import annotations

import copy

import pytest
import torch
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.comparing.unmoved import why_unmoved
from tensornp.render.models.comparison import weights_comparison_document


class Net(torch.nn.Module):
    """A body and a head, of which the optimizer may be given one alone."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head, self.aux = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3), torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what does not depend on `aux`, whose gradient is 0."""
        x = self.body(x)
        return self.head(x) + 0 * self.aux(x)


def step(model: Net, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.ones(2, 6)).square().sum().backward()
    optimizer.step()


def compared(a: object, b: object) -> WeightsComparison:
    found = tnp.compare(a, b)
    assert isinstance(found, WeightsComparison)
    return found


def told(a: object, b: object) -> list[str]:
    return weights_comparison_document(compared(a, b)).text().splitlines()


def test_a_weight_that_the_optimizer_was_not_given_is_asked_about():
    """It has a gradient, whose norm is told, and did not move; one whose gradient is 0 is told from it."""
    model = Net()
    optimizer = torch.optim.SGD(model.body.parameters(), lr=0.1)
    before = copy.deepcopy(model.state_dict())
    step(model, optimizer)
    norms = sorted(float(one.grad.norm()) for one in model.head.parameters())
    with unchanged(*model.parameters()):
        lines = told(before, model)
    assert (
        f"head.weight, head.bias: have gradients (norms {norms[0]:.3g} to {norms[1]:.3g}) and did not move: "
        "are they in the optimizer?"
    ) in lines
    assert "aux.weight, aux.bias: their gradients are 0" in lines
    optimizer.zero_grad()
    # What no group has is set to None by nobody.
    assert any(line.startswith("head.weight, head.bias: have gradients") for line in told(before, model))
    model.head.bias.requires_grad_(False)
    why = why_unmoved(compared(before, model))
    assert why["head.weight"].endswith(") and did not move: is it in the optimizer?")
    assert why["head.bias"] == "frozen (requires_grad=False)"
    assert why["aux.bias"] == "its gradient is 0"
    assert "body.weight" not in why
    assert "1 frozen (requires_grad=False): head.bias" in told(before, model)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gradient_that_is_lost_by_rounding_is_told_so(dtype):
    """Where subtracting all of it changes no bit of the weight; elsewhere it is asked for the optimizer."""
    model = Net().to(dtype)
    before = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        model.body.weight.add_(1)
        model.head.weight.fill_(1)
        before["head.weight"].fill_(1)
    eps = torch.finfo(dtype).eps
    model.body.weight.grad = torch.ones_like(model.body.weight)
    model.head.weight.grad = torch.full_like(model.head.weight, eps / 8)
    model.head.bias.grad = torch.full_like(model.head.bias, 0.5)
    with unchanged(*model.parameters()):
        why = why_unmoved(compared(before, model))
    name = str(dtype).removeprefix("torch.")
    assert why["head.weight"].endswith(f"so small that subtracting it changes nothing in {name}")
    assert why["head.bias"].endswith("is it in the optimizer?")
    model.head.weight.grad[0, 0] = 1
    assert why_unmoved(compared(before, model))["head.weight"].endswith("is it in the optimizer?")


def test_where_nothing_moved_gradients_say_that_something_should_have():
    """An optimizer of another model steps; of two models that nobody trains, nothing is said."""
    model, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    before = copy.deepcopy(model.state_dict())
    assert len(weights_comparison_document(compared(before, model)).text().splitlines()) <= 2
    model(torch.ones(1, 3)).sum().backward()
    torch.optim.SGD(other.parameters(), 0.1).step()
    text = weights_comparison_document(compared(before, model)).text()
    assert "did not move: are they in the optimizer?" in text

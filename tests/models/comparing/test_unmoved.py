"""Why weights did not move: what is frozen, what has a gradient and no optimizer, and what is known of neither."""

from __future__ import annotations

import copy

import torch
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.comparing.comparison import WeightsComparison, why_unmoved
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
    with unchanged(*model.parameters()):
        lines = told(before, model)
    assert "2 weights unchanged, non-zero .grad: head.weight, head.bias" in lines
    assert "2 weights unchanged, zero .grad: aux.weight, aux.bias" in lines
    model.head.bias.requires_grad_(False)
    why = why_unmoved(compared(before, model))
    norm = float(model.head.weight.grad.norm())
    assert why["head.weight"] == f"non-zero .grad (norm {norm:.3g})"
    assert why["head.bias"] == "frozen"
    assert why["aux.bias"] == "zero .grad"
    assert "body.weight" not in why

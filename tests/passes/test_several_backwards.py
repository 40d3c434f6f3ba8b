"""Of several backwards in one block, the first that is not finite is told, by what came back in it alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tensornp as tnp

LEVELS = ("modules", "operators")
OF_LOSS = "the first NaN was born in the loss or its backward, after {}, the last call with a gradient"
INSIDE = "NaN entered the gradients in Net, after b: those of the calls that followed were fine"


class Net(nn.Module):
    """A model whose hidden values may be all 0: the gradient of their norm is NaN then."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.head = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, is_bad: bool = False) -> torch.Tensor:
        hidden = self.b(torch.tanh(self.a(x)))
        if is_bad:
            hidden = hidden - hidden.detach()
        return self.head(hidden / (hidden.pow(2).sum(-1, keepdim=True).sqrt() + 1e-6))


def loss_of(model: nn.Module, x: torch.Tensor, bad: str) -> torch.Tensor:
    y = model(x, bad == "inside")
    return (y - y.detach()).pow(2).mean().sqrt() if bad == "loss" else (y - 1).pow(2).mean()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("plan", "nth", "told"),
    [
        (("", "inside", "", "loss"), 1, INSIDE),
        (("", "loss", "", "inside"), 1, OF_LOSS.format("Net (2nd call)")),
        (("", "loss", "loss", ""), 1, OF_LOSS.format("Net (2nd call)")),
        (("", "", "", "inside"), 3, INSIDE),
        (("loss",), 0, OF_LOSS.format("Net")),
    ],
)
def test_the_first_backward_that_is_not_finite_is_told(plan: tuple[str, ...], nth: int, told: str, level: str):
    """Of a loop that skips the steps of gradients that are not finite."""
    torch.manual_seed(0)
    model, x = Net(), torch.randn(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with tnp.follow(model, level=level) as run:
        for bad in plan:
            loss_of(model, x, bad).backward()
            if torch.isfinite(nn.utils.clip_grad_norm_(model.parameters(), 1.0)):
                optimizer.step()
            optimizer.zero_grad()
    origin = run.first("nan")
    assert origin is not None and origin.call is not None and run.calls[origin.call].nth == nth
    assert told in origin.sentence and origin.sentence in run.problems


@pytest.mark.parametrize("bad", ["inside", "loss"])
def test_what_a_step_has_spoilt_came_in_the_backward_before_it(bad: str):
    """Where layers before the spoilt one are not the optimizer's, and go on to give what is finite."""
    torch.manual_seed(0)
    model, x = Net(), torch.randn(16, 8)
    optimizer = torch.optim.SGD([*model.b.parameters(), *model.head.parameters()], 0.1)
    with tnp.follow(model) as run:
        for i in range(4):
            model.zero_grad()
            loss_of(model, x, bad if i == 1 else "").backward()
            optimizer.step()
    assert run.first("nan").call == {"inside": 6, "loss": 4}[bad]
    assert run.problems[0].endswith(INSIDE) if bad == "inside" else OF_LOSS.format("Net (2nd call)") in run.problems[0]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("are_together", [True, False])
@pytest.mark.parametrize("bad", [(0,), (1,), (0, 1)])
def test_of_two_losses_the_one_whose_backward_came_first_is_told(bad: tuple[int, ...], are_together: bool, order):
    """As of an actor and a critic, whose forwards may come together."""
    models, x, losses = (nn.Linear(4, 3), nn.Linear(4, 2)), torch.ones(2, 4), {}
    actor, critic = models
    with tnp.follow() as run:
        for i, model in enumerate((actor, critic)) if are_together else ():
            y = model(x)
            losses[i] = (y - y.detach()).pow(2).mean().sqrt() if i in bad else y.mean()
        for i in order:
            if not are_together:
                y = models[i](x)
                losses[i] = (y - y.detach()).pow(2).mean().sqrt() if i in bad else y.mean()
            losses[i].backward()
    name = ("actor", "critic")[next(i for i in order if i in bad)]
    assert OF_LOSS.format(name) in run.problems[0]
    assert run.calls[run.first("nan").call].name == name

"""Of several backwards in one block, the first that is not finite is told, by what came back in it alone."""

from __future__ import annotations

import threading

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


def test_what_came_finite_in_several_backwards_is_known_in_each():
    """A trunk, with a backward for each of its heads."""
    trunk, head, other = nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(3, 2)
    with tnp.follow() as run:
        hidden = trunk(torch.ones(1, 3))
        one, two = head(hidden).sum(), other(hidden.relu()).sum()
        one.backward(retain_graph=True)
        two.backward()
    (of_one, of_two), orders = run._record.backwards, run.calls[0].outputs[0].grad_orders
    assert [of_one < orders[0] < of_two < orders[1], len(orders)] == [True, 2]


@pytest.mark.parametrize("is_first", [True, False])
def test_the_last_call_with_a_gradient_is_one_of_that_backward(is_first: bool):
    """Another head was called later, and its gradients came before or later."""
    trunk, other, head = nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(3, 2)
    with tnp.follow() as run:
        hidden = trunk(torch.ones(1, 3))
        y = other(hidden)
        odd, fine = (y - y.detach()).pow(2).sum().sqrt(), head(hidden).sum()
        for loss in (odd, fine) if is_first else (fine, odd):
            loss.backward(retain_graph=True)
    assert OF_LOSS.format("other") in run.problems[0]


class Reentrant(torch.autograd.Function):
    """Has a backward inside its backward, as a checkpoint of the older kind."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, module: nn.Module) -> torch.Tensor:
        ctx.x, ctx.module = x.detach().requires_grad_(), module
        with torch.no_grad():
            return module(x)

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> tuple[torch.Tensor | None, None]:
        with torch.enable_grad():
            y = ctx.module(ctx.x)
        torch.autograd.backward(y, grad)
        return ctx.x.grad, None


def test_a_backward_inside_another_is_a_part_of_it():
    """Also where it is the first that brings a gradient."""
    first, inner = nn.Linear(3, 3), nn.Linear(3, 3)
    with tnp.follow() as run:
        for _ in range(2):
            Reentrant.apply(first(torch.ones(1, 3)), inner).sum().backward()
    assert run._record.backwards == (0, 6)


def test_what_a_later_backward_brings_through_an_earlier_graph_came_in_the_later_one():
    """As of states that are handed on, with a backward at each step."""
    cell, head = nn.Linear(3, 3), nn.Linear(3, 1)
    state = torch.ones(1, 3)
    with tnp.follow() as run:
        for i in range(3):
            state = torch.tanh(cell(state))
            y = head(state)
            loss = (y - y.detach()).pow(2).sum().sqrt() if i == 2 else y.sum()
            loss.backward(retain_graph=True)
    origin = run.first("nan")
    assert origin.call == 5 and "after head (3rd call)" in origin.sentence
    assert all(value.grad_orders for call in run.calls for value in call.outputs)


@pytest.mark.parametrize("num", [1, 3])
def test_a_checkpoint_has_its_backward_where_it_was_called(num: int):
    """What it calls anew, and is counted, stands in the backward that made it do so."""
    from torch.utils.checkpoint import checkpoint

    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    with tnp.follow() as run:
        for i in range(num):
            y = checkpoint(b, torch.tanh(a(torch.ones(1, 3))), use_reentrant=False)
            ((y - y.detach()).pow(2).sum().sqrt() if i == num - 1 else y.sum()).backward()
    assert f"after b{' (5th call)' if num == 3 else ''}, the last call with a gradient" in run.first("nan").sentence


class Within(torch.autograd.Function):
    """Has a backward of something else inside its own, of which nobody tells before."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, loss: list[torch.Tensor]) -> torch.Tensor:
        (ctx.loss,) = loss
        return x * 2

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.loss.backward()
        return grad * 2, None


def test_one_that_brings_its_first_gradient_after_one_inside_it_is_the_same():
    outer, inner = nn.Linear(3, 3), nn.Linear(3, 1)
    with tnp.follow() as run:
        for _ in range(3):
            loss = inner(torch.ones(1, 3)).sum()
            Within.apply(outer(torch.ones(1, 3)), [loss]).sum().backward()
    assert run._record.backwards == (0, 6, 12)


def test_two_at_a_time_are_one():
    """In two threads, each of which waits for the other's."""
    barrier = threading.Barrier(2, timeout=60)

    class Waits(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx, grad: torch.Tensor) -> torch.Tensor:
            barrier.wait()
            return grad * 2

    def run_one(model: nn.Module) -> None:
        first, last = model
        last(Waits.apply(first(torch.ones(1, 3)))).sum().backward()

    models = [nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)) for _ in range(2)]
    with tnp.follow(*(one for model in models for one in model)) as run:
        threads = [threading.Thread(target=run_one, args=(model,)) for model in models]
        for one in threads:
            one.start()
        for one in threads:
            one.join(60)
        models[0](torch.ones(1, 3)).sum().backward()
    assert run._record.backwards == (0, 12)

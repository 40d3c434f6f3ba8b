"""Whether `.grad` held values before a pass, which that was added to; no `.grad` is changed by asking."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tensornp as tnp

SAYS = "`.grad` held values before: this pass was added to them"


def made() -> nn.Module:
    """Return a model."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def backward(model: nn.Module) -> None:
    """Have gradients come back."""
    model(torch.ones(2, 3) * torch.tensor([[1.0], [2.0]])).sum().backward()


def found(run: tnp.FollowedPass) -> list[str]:
    """Return what is told of `.grad`."""
    return [one for one in run.problems if ".grad" in one]


def test_what_a_pass_is_added_to_is_said():
    """And the gradients are the sums that they would be."""
    plain, model = made(), made()
    for one in (plain, model):
        backward(one)
    backward(plain)
    with tnp.follow() as run:
        backward(model)
    assert found(run) == [SAYS]
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(plain.parameters(), model.parameters(), strict=True))
    held = next(one.held for one in run._record.grads if one.name == "0.weight")
    assert held.norm == pytest.approx(model[0].weight.grad.norm().item() / 2, rel=1e-5)
    assert run.grads["0.weight"].norm == pytest.approx(held.norm, rel=1e-5)


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize("is_between", [True, False])
def test_a_gradient_that_was_let_go_of_is_not(to_none, is_between):
    """Before the call, or between it and the backward; zeros are no values either."""
    model = made()
    backward(model)
    with tnp.follow() as run:
        if not is_between:
            model.zero_grad(set_to_none=to_none)
        loss = model(torch.ones(2, 3)).sum()
        if is_between:
            model.zero_grad(set_to_none=to_none)
        loss.backward()
    assert found(run) == []


def test_the_parameters_are_named_where_they_are_some():
    """And what was not finite there, by itself."""
    model = made()
    model[0].weight.grad = torch.ones(4, 3)
    model[1].bias.grad = torch.full((2,), torch.nan)
    with tnp.follow() as run:
        backward(model)
    assert found(run) == [f"{SAYS} (0.weight)", "`.grad` held NaN before: this pass was added to it (1.bias)"]
    assert run.first("nan") is None


AGAIN = "`.grad` was not zeroed between two steps: the second took the gradients of the first once more"


def trained(model: nn.Module, zeroed, num_backwards: int = 1) -> tnp.FollowedPass:
    """Follow three steps, each after as many backwards; `zeroed` is called before the first of them."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with tnp.follow(model) as run:
        for _ in range(3):
            zeroed(optimizer)
            for _ in range(num_backwards):
                backward(model)
            optimizer.step()
    return run


def test_gradients_that_are_stepped_twice_are_said():
    """Of all parameters, or of those that were not zeroed."""
    assert found(trained(made(), lambda optimizer: None)) == [AGAIN]
    model = made()
    assert found(trained(model, lambda optimizer: model[1].zero_grad())) == [f"{AGAIN} (0.weight, 0.bias)"]


OTHERS = "moved none of the parameters that got gradients: the optimizer has others"


@pytest.mark.parametrize("is_bound", [True, False])
@pytest.mark.parametrize("is_another", [True, False])
def test_an_optimizer_of_an_earlier_model_is_told(is_another, is_bound):
    """As where the cell of the model is run again, and that of the optimizer is not."""
    model = made()
    optimizer = torch.optim.SGD((made() if is_another else model).parameters(), 0.1)
    with tnp.follow(*[model] * is_bound) as run:
        optimizer.zero_grad()
        backward(model)
        optimizer.step()
    assert sum(one.endswith(OTHERS) for one in run.problems) == is_another


@pytest.mark.parametrize("followed", [0, 1])
def test_an_optimizer_of_another_model_is_not(followed):
    """The generator's backward goes through the discriminator, and each has an optimizer."""
    models = made(), nn.Linear(2, 1)
    of_generator, of_judge = (torch.optim.SGD(one.parameters(), 0.01) for one in models)
    generator, judge = models
    for optimizer in (of_generator, of_judge):
        with tnp.follow(models[followed]) as run:
            optimizer.zero_grad()
            judge(generator(torch.ones(2, 3))).sum().backward()
            optimizer.step()
        assert not [one for one in run.problems if OTHERS in one]
        judge.zero_grad(), generator.zero_grad()

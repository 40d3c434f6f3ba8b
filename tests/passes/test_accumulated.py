"""Whether `.grad` held values before a pass, which that was added to; no `.grad` is changed by asking."""

from __future__ import annotations

import threading

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


def test_passes_inside_of_one_block_are_not_told_to_be_added_to_each_other():
    """What the block itself has brought was not there before."""
    model = made()
    with tnp.follow() as run:
        backward(model)
        backward(model)
    assert found(run) == []
    assert [one.held for one in run._record.grads] == [None] * 4


def test_gradients_of_several_backwards_are_told_to_be_those_of_the_last():
    """Of which a step takes the sum; those of another step are no part of that."""
    model = made()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    said = "gradients came in 3 backwards with no step of theirs between: the last of them is told"
    with tnp.follow() as run:
        backward(model)
        optimizer.step()
        for _ in range(3):
            backward(model)
        optimizer.step()
    assert said in run.problems
    with tnp.follow() as run:
        for _ in range(3):
            backward(model)
            optimizer.step()
    assert not any("backwards" in one for one in run.problems)
    with tnp.follow() as run:
        model(torch.ones(2, 3)).sum().backward()
        model[0](torch.ones(2, 3)).sum().backward()
    assert "gradients came in 2 backwards: the last of them is told (0.weight, 0.bias)" in run.problems


def test_the_parameters_are_named_where_they_are_some():
    """And what was not finite there, by itself."""
    model = made()
    model[0].weight.grad = torch.ones(4, 3)
    model[1].bias.grad = torch.full((2,), torch.nan)
    with tnp.follow() as run:
        backward(model)
    assert found(run) == [f"{SAYS} (0.weight)", "`.grad` held NaN before: this pass was added to it (1.bias)"]
    assert run.first("nan") is None


def test_a_pass_without_a_backward_is_added_to_nothing():
    """Whatever is held."""
    model = made()
    backward(model)
    with tnp.follow() as run:
        model(torch.ones(2, 3))
    assert found(run) == []


def test_sparse_gradients_are_told_too():
    """By the elements that they store."""
    model = nn.Embedding(5, 2, sparse=True)
    model(torch.tensor([1])).sum().backward()
    with tnp.follow() as run:
        model(torch.tensor([2])).sum().backward()
    assert found(run) == [SAYS]


def test_nothing_is_read_while_another_thread_runs():
    """Torch does not guard it; then nothing is said."""
    model, stop = made(), threading.Event()
    backward(model)
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with tnp.follow() as run:
            backward(model)
    finally:
        stop.set()
        thread.join()
    assert found(run) == []
    assert run.grads["0.weight"] is not None
    assert run.complete


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


@pytest.mark.parametrize("num_backwards", [1, 3, 12])
@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_that_are_zeroed_are_not(to_none, num_backwards):
    """However many backwards a step takes."""
    run = trained(made(), lambda optimizer: optimizer.zero_grad(set_to_none=to_none), num_backwards)
    assert found(run) == []


@pytest.mark.parametrize("num_steps", [3, 5, 9])
@pytest.mark.parametrize("is_zeroed", [True, False])
def test_what_another_model_brings_between_two_steps_is_none_of_them(is_zeroed, num_steps):
    """The generator's backward goes through the discriminator, whose step zeroes first."""
    generator, judge = made(), nn.Linear(2, 1)
    of_judge, of_generator = (torch.optim.SGD(one.parameters(), 0.01) for one in (judge, generator))
    with tnp.follow() as run:
        for _ in range(num_steps):
            if is_zeroed:
                of_judge.zero_grad()
            judge(generator(torch.ones(2, 3)).detach()).square().sum().backward()
            of_judge.step()
            of_generator.zero_grad()
            judge(generator(torch.ones(2, 3))).sum().backward()
            of_generator.step()
    assert found(run) == ([] if is_zeroed else [f"{AGAIN} (judge.weight, judge.bias)"])


class Listed(nn.Module):
    """Computes with parameters of what it does not call."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ParameterList([torch.ones(3), torch.ones(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a sum of products."""
        return x * self.parts[0] + x * self.parts[1]


@pytest.mark.parametrize(
    "make", [lambda: nn.MultiheadAttention(4, 2, batch_first=True), Listed], ids=["attention", "a list"]
)
def test_parameters_of_parts_that_are_not_called_are_looked_at(make):
    """What held values, and what is stepped twice."""
    model = make()
    arguments = (torch.ones(1, 2, 4),) * 3 if isinstance(model, nn.MultiheadAttention) else (torch.ones(3),)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step() -> None:
        out = model(*arguments)
        (out[0] if isinstance(out, tuple) else out).square().sum().backward()
        optimizer.step()

    step()
    with tnp.follow(model) as run:
        step()
        step()
    assert found(run) == [SAYS, AGAIN]


def test_gradients_are_counted_from_the_last_step_of_their_own_parameters():
    """Steps of another optimizer come between them."""
    model, other = made(), made()
    of_other = torch.optim.SGD(other.parameters(), 0.1)
    with tnp.follow() as run:
        for _ in range(4):
            backward(model)
            of_other.zero_grad()
            backward(other)
            of_other.step()
    names = "(model.0.weight, model.0.bias, model.1.weight, …)"
    said = f"gradients came in 4 backwards with no step of theirs between: the last of them is told {names}"
    assert said in run.problems


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


@pytest.mark.parametrize("has_step", [True, False])
def test_what_was_let_go_of_before_it_was_stepped_is_no_value(has_step):
    """A backward of something else comes first: that of the generator, or of a map of saliency."""
    model = made()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    backward(model)
    with tnp.follow(model) as run:
        backward(model)
        for _ in range(2):
            optimizer.zero_grad()
            backward(model)
            if has_step:
                optimizer.step()
    assert SAYS not in found(run)


def test_a_gradient_that_is_not_finite_is_told_and_not_called_the_last():
    """Where it came in a backward before."""
    model = made()
    with tnp.follow(model) as run:
        for factor in (1.0, torch.inf, 2.0):
            model.zero_grad()
            (model(torch.ones(2, 3)) * factor).sum().backward()
    assert not run.grads["1.bias"].is_finite
    assert not any("the last of them" in one for one in run.problems)


def test_gradients_that_a_scripted_model_holds_are_looked_at():
    """Its tables of modules and parameters are none of Python's."""
    model = torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 2))))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with tnp.follow() as run:
        for _ in range(2):
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
    assert run.problems[0].startswith("`.grad` was not zeroed between two steps")
    assert not run._record.notes


@pytest.mark.parametrize("is_beside_another", [True, False])
def test_gradients_of_a_backward_whose_graph_goes_on_are_marked_beside_others(is_beside_another):
    """As those of a gradient penalty, which is differentiated once more."""
    model, x = nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(), nn.Linear(4, 1)), torch.randn(8, 3, requires_grad=True)
    with tnp.follow(model) as run:
        (grad,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        if is_beside_another:
            (grad.norm(dim=1) - 1).square().mean().backward()
    marked = {call.name for call in run.calls if "gradient of a backward with create_graph" in call.outputs[0].note}
    assert marked == ({"", "1", "2"} if is_beside_another else set())
    assert ("create_graph" in tnp.card(run).text) is is_beside_another

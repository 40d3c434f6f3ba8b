"""The steps of optimizers in a pass: how many, where, and what they made of parameters; the training is as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer

import tensornp as tnp

HOOKS = (torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks)


class Spoils(torch.optim.SGD):
    """An optimizer whose step writes NaN into the first parameter."""

    def step(self, closure=None):  # type: ignore[no-untyped-def]
        """Do a step, and spoil."""
        out = super().step(closure)
        with torch.no_grad():
            self.param_groups[0]["params"][0].view(-1)[0] = torch.nan
        return out


def step_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Train for one step."""
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()


def test_steps_are_counted_and_stand_among_calls_and_gradients():
    """With their class and their line."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters())
    with tnp.follow() as run:
        step_of(model, optimizer)
        step_of(model, optimizer)
    first, second = run._record.steps
    assert (first.class_name, first.num_calls, second.num_calls) == ("Adam", 3, 6)
    assert (first.num_gradients, second.num_gradients) == (6, 12)
    assert first.source.text == "optimizer.step()"
    assert first.is_done
    assert first.spoilt == ()
    assert run.first("nonfinite") is None
    assert "2 steps of Adam" in tnp.card(run).text


@pytest.mark.parametrize("is_called_again", [False, True])
def test_a_parameter_that_a_step_spoils_is_told_with_its_line(is_called_again):
    """Also where nobody has called the model since."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = Spoils(model.parameters(), lr=0.1)
    with tnp.follow() as run:
        step_of(model, optimizer)
        if is_called_again:
            model(torch.ones(1, 3))
    origin = run.first("nan")
    assert (origin.phase, origin.name) == ("optimizer", "0.weight")
    assert origin.sentence.startswith("0.weight held NaN after a step of the optimizer (Spoils, test_steps.py:")
    assert "`optimizer.step()`), and was finite before it" in origin.sentence
    assert "?" not in origin.sentence
    assert run.problems[0] == origin.sentence
    assert origin.sentence.partition(" (")[0] in tnp.card(run).text


@pytest.mark.parametrize("level", ["modules", "operators"])
def test_a_step_that_is_too_large_is_named_at_both_levels(level):
    """Where operators are followed, with the one that made it."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=3e38)
    with tnp.follow(level=level) as run:
        step_of(model, optimizer)
    origin = run.first("inf")
    assert (origin.phase, origin.source.text) == ("optimizer", "optimizer.step()")
    assert "after a step of the optimizer (SGD, test_steps.py:" in origin.sentence
    assert bool(origin.operator) is (level == "operators")
    assert run.problems.count(origin.sentence) == 1
    assert tnp.card(run).text


def test_a_gradient_that_is_not_finite_is_the_origin_and_what_the_step_made_of_it_is_told_beside():
    """A step writes what it is given."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tnp.follow() as run:
        ((model(torch.ones(2, 3)).sum() * 0).sqrt()).backward()
        optimizer.step()
    assert run.first("nan").phase == "backward"
    assert any("held NaN after a step of the optimizer (SGD" in one for one in run.problems[1:])


@pytest.mark.parametrize("kind", ["fused", "foreach", "closure", "tied", "two"])
def test_weights_are_read_again_after_each_step(kind):
    """Also where a fused one does not count what it writes, and each by the optimizer that has it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    if kind == "tied":
        model[1].weight = model[0].weight
    if kind == "closure":
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)
    elif kind == "two":
        optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
        torch.optim.SGD(model[1].parameters(), lr=0.1)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1, **{kind: True} if kind != "tied" else {})
    expected = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        expected.append([p.max().item() for p in (model[0].weight, model[1].weight)])
        loss = model(torch.ones(2, 3)).square().sum()
        loss.backward()
        return loss

    with tnp.follow() as run:
        for _ in range(3):
            if kind == "closure":
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
    found = [[run.calls[i + 1].params[0].max, run.calls[i + 2].params[0].max] for i in range(0, len(run.calls), 3)]
    assert found == expected
    assert len(run._record.steps) == 3
    assert len({str(one) for one in expected}) >= 3


@pytest.mark.parametrize("ending", ["return", "error", "interrupt", "step"])
def test_hooks_of_optimizers_are_gone_whatever_ends_the_block(ending):
    """And a step that raised is told as not done."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [dict(one) for one in HOOKS]
    run = tnp.follow()

    def raises() -> float:
        raise ValueError

    with pytest.raises((ValueError, KeyboardInterrupt)) if ending != "return" else run as _:
        if ending != "return":
            with run:
                step_of(model, optimizer)
                if ending == "step":
                    optimizer.step(raises)
                raise {"error": ValueError, "interrupt": KeyboardInterrupt}[ending]
        step_of(model, optimizer)
    assert [dict(one) for one in HOOKS] == before
    assert [one.is_done for one in run._record.steps] == [True] + [False] * (ending == "step")
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_a_step_of_a_frozen_weight_is_told():
    """A `.grad` from before it was frozen moves it; one that is let go of does not."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.randn(4, 3)).sum().backward()
    model[0].requires_grad_(False)
    for frozen in (("0.weight", "0.bias"), ()):
        with tnp.follow() as run:
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
        assert run.steps[0].frozen == frozen
        told = [one for one in run.problems if "require no gradient" in one]
        assert bool(told) is bool(frozen)
        if told:
            assert told[0].startswith("2 parameters require no gradient, and a step of the optimizer (SGD, ")
            assert told[0].endswith("changed them all the same: 0.weight, 0.bias")
        model.zero_grad()


@pytest.mark.parametrize(
    "cut", [lambda loss: loss.detach().requires_grad_(), lambda loss: torch.tensor(loss.item(), requires_grad=True)]
)
def test_a_step_to_which_no_gradient_came_is_told(cut: Callable[[torch.Tensor], torch.Tensor]):
    """A loss that is cut from its model has a backward, and no error; without gradients, nothing is known."""
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    told = "began, and no gradient had come back to what was called before it"
    for is_cut, grads in ((True, True), (False, True), (True, False)):
        with tnp.follow(grads=grads) as run:
            for _ in range(2):
                optimizer.zero_grad()
                loss = model(torch.randn(4, 3)).mean()
                (cut(loss) if is_cut else loss).backward()
                optimizer.step()
        assert sum(told in one for one in run.problems) == (is_cut and grads)
    with tnp.follow() as run:
        with torch.no_grad():
            model(torch.randn(4, 3))
        optimizer.step()
    assert not run.problems


class Around(torch.optim.Optimizer):
    """Makes the steps of another one, as wrappers do that call what they derive from."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self, closure: Callable[[], torch.Tensor] | None = None) -> torch.Tensor | None:
        return self.inner.step(closure)


@pytest.mark.parametrize("has_wrapper", [False, True])
def test_a_step_within_that_of_a_wrapper_is_one(has_wrapper: bool):
    """What was accumulated before a closure, and in it, is taken once."""
    model = nn.Linear(3, 1)
    inner = torch.optim.SGD(model.parameters(), 0.1)
    optimizer = Around(inner) if has_wrapper else inner

    def closure() -> torch.Tensor:
        loss = model(torch.randn(4, 3)).square().mean()
        loss.backward()
        return loss

    with tnp.follow() as run:
        for _ in range(2):
            closure()
            optimizer.step(closure)
            optimizer.zero_grad()
    assert not any("was not zeroed between two steps" in one for one in run.problems)


@pytest.mark.parametrize(("rate", "num_steps", "phase"), [(1, 4, "forward"), (1, 6, "forward"), (0.1, 6, "backward")])
def test_a_loop_that_diverges_is_told_by_what_left_its_range(rate: float, num_steps: int, phase: str):
    """However long it goes on, and with weights that are NaN by then."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer, x = torch.optim.SGD(model.parameters(), rate), torch.randn(64, 16) * 5
    with tnp.follow(model) as run:
        for _ in range(num_steps):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), x.sum(1, keepdim=True) * 10).backward()
            optimizer.step()
    assert run.first("inf").phase == phase
    assert run.problems[0] == run.first("inf").sentence


def test_tied_weights_get_their_gradient_in_one_backward():
    """Two names, and one node that accumulates."""
    emb, head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
    head.weight = emb.weight
    with tnp.follow() as run:
        head(emb(torch.arange(3))).sum().backward()
    assert not any("backwards" in one for one in run.problems)
    assert all(one.num_backwards == 1 for one in run._record.grads)

"""A weight that is not finite is told to have been so before the pass where that is known, else what is known of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import tensornp as tnp

NAN = float("nan")
LEVELS = ("modules", "operators")
ONES = torch.ones(1, 3)


def linear(value: float | None = None, **options: Any) -> nn.Linear:
    """Return a small layer, of one value throughout where that is given."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 3, **options)
    if value is not None:
        nn.init.constant_(layer.weight, value)
    return layer


def divided(model: nn.Linear) -> None:
    with torch.no_grad():
        model.weight.div_(0).mul_(0)


def loaded(model: nn.Linear) -> None:
    model.load_state_dict({"weight": torch.full((3, 3), NAN), "bias": torch.zeros(3)})


def moved(model: nn.Linear) -> None:
    with torch.no_grad():
        model.weight.lerp_(torch.full((3, 3), NAN), 0.1)


def replaced(model: nn.Linear) -> None:
    model.weight = nn.Parameter(model.weight.detach() * NAN)


def set_data(model: nn.Linear) -> None:
    model.weight.data = model.weight.data * NAN


def registered(model: nn.Linear) -> None:
    del model.weight
    model.register_parameter("weight", nn.Parameter(torch.full((3, 3), NAN)))


WRITTEN, PUT = "and had been written in the pass", "and had been put there in the pass"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("is_given", [True, False])
@pytest.mark.parametrize(
    ("change", "told"),
    [(divided, WRITTEN), (loaded, WRITTEN), (moved, WRITTEN), (replaced, PUT), (set_data, PUT), (registered, PUT)],
)
def test_what_was_done_to_a_weight_before_its_first_call_is_told(change, told, is_given, level):
    """Nothing is known of what it held before the pass."""
    model = linear(1.0)
    with tnp.follow(*[model] * is_given, level=level) as run:
        change(model)
        model(ONES)
    said = [*run.problems, run.first("nan").sentence]
    assert not any("before the pass" in one for one in said), said
    assert run.first("nan").phase != "before the pass"
    # Where operators are followed that have made it, these are told first.
    assert run.problems[-1] == f"weight held NaN when Linear was first called, {told}"
    assert len(run.problems) == 1 or (level == "operators" and not is_given)


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_made_in_the_block_held_nothing_before_it(level):
    """Nor is it known to have been written after it was made."""
    with tnp.follow(level=level) as run:
        model = nn.Sequential(linear(), nn.ReLU())
        with torch.no_grad():
            model[0].weight.log_()
        model(ONES)
    said = "0.weight held NaN when 0 (Linear) was first called"
    if level == "modules":
        assert run.problems == [said]
        assert run.first("nan").phase == "forward"
    else:
        assert run.problems[0].startswith("the first NaN was born at `log_`")
        assert run.problems[1] == f"{said}, {WRITTEN}"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("average", ["swa", "target"])
def test_averages_of_what_a_step_has_spoilt_come_from_it(average, level):
    """They were updated after the step, and before they were called."""
    model = linear()
    target = torch.optim.swa_utils.AveragedModel(model) if average == "swa" else copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tnp.follow(level=level) as run:
        (model(ONES).sum() * 1e38 * 1e38).backward()
        optimizer.step()
        if average == "swa":
            target.update_parameters(model)
        else:
            target.load_state_dict(model.state_dict())
        target(ONES)
    assert not any("before the pass" in one for one in run.problems), run.problems
    name = "target.module" if average == "swa" else "target"
    assert any(
        one == "2 parameters that had been written in the pass held −Inf when first read: "
        f"{name}.weight, {name}.bias" for one in run.problems
    )  # fmt: skip
    assert f"{name}." not in run.problems[0]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("is_given", [True, False])
def test_inner_steps_write_no_weight(is_given, level):
    """What a step of an inner loop has made takes the place of weights that stay as they are."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    nn.init.constant_(model[2].bias, -5.0)
    with tnp.follow(*[model] * is_given, level=level) as run:
        own = dict(model.named_parameters())
        loss = torch.func.functional_call(model, own, (torch.ones(2, 3),)).sqrt().mean()
        grads = torch.autograd.grad(loss, list(own.values()))
        fast = {name: one - 0.1 * grad for (name, one), grad in zip(own.items(), grads, strict=True)}
        torch.func.functional_call(model, fast, (torch.ones(2, 3),))
    assert all(one.isfinite().all() for one in model.parameters())
    assert not any("written" in one or "before the pass" in one for one in run.problems), run.problems
    if is_given or level == "modules":
        assert run.problems[0] == (
            "what was given for 0.weight in a functional call held NaN when 0 (Linear, 2nd call) was called"
        )

"""A gradient scaler: what is infinite because of its scale is no fault of the model, and the step that it skips."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tensornp as tnp

X = torch.tensor([[1.0, 2.0, -1.0], [0.5, 1.0, 3.0]])


def made(scale: float, *, fused: bool = False) -> tuple[nn.Module, torch.optim.Optimizer, torch.amp.GradScaler]:
    """Return a model, its optimizer and a scaler."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=fused)
    return model, optimizer, torch.amp.GradScaler("cpu", init_scale=scale)


def step_of(model, optimizer, scaler, factor: float = 1.0) -> None:
    """Train for one step."""
    optimizer.zero_grad()
    scaler.scale(model(X).sum() * factor).backward()
    scaler.step(optimizer)
    scaler.update()


@pytest.mark.parametrize("level", ["modules", "operators"])
@pytest.mark.parametrize("fused", [False, True])
def test_inf_in_scaled_gradients_is_told_with_the_scale_and_is_no_alarm(fused, level):
    """A loss of 1e30 is finite, and 65,536 times its gradients are; by another factor they are not."""
    model, optimizer, scaler = made(65536.0, fused=fused)
    with tnp.follow(level=level) as run:
        step_of(model, optimizer, scaler, 1e35)
    assert run.problems[0] == "Inf in the scaled gradients (scale 65,536); the scaler skipped this step"
    assert run.first("inf") is run.first("nan") is None
    assert run.problems[0] in tnp.card(run).text
    assert "no infinity" not in tnp.card(run).text
    assert scaler.get_scale() == 32768
    assert run._record.scaling.num_skipped == 1


def test_steps_that_are_skipped_are_counted():
    """Three in one block, before one that is made."""
    model, optimizer, scaler = made(2.0**20)
    with tnp.follow() as run:
        for factor in (1e35, 1e35, 1e35, 1.0):
            step_of(model, optimizer, scaler, factor)
    assert run.problems[0] == "Inf in the scaled gradients (scale 1,048,576 at first); the scaler skipped 3 steps"
    assert len(run._record.steps) == 1


def test_what_a_scaler_does_not_explain_is_the_model_s():
    """NaN that comes first, an Inf of the forward, and Inf where the scale has fallen to 1."""
    model, optimizer, scaler = made(65536.0)
    with tnp.follow() as run:
        scaler.scale((model(X).sum() * 0).sqrt() * 0).backward()
        scaler.step(optimizer)
        scaler.update()
    assert run.first("nan").phase == "backward"
    assert any(one.endswith("the scaler skipped this step") for one in run.problems[1:])
    with torch.no_grad():
        model[0].weight[0, 0] = torch.inf
    with tnp.follow() as run:
        step_of(model, optimizer, scaler)
    assert run.first("inf").name == "0.weight"
    model, optimizer, scaler = made(1.0)
    with tnp.follow() as run:
        scaler.scale((model(X).sum() * 1e38 * 10).clamp(max=1) * 1e38).backward()
        model[0].weight.grad.fill_(torch.inf)
        scaler.step(optimizer)
        scaler.update()
    assert run._record.scaling.scale == 1


def test_a_scaler_at_rest_says_nothing():
    """Nor one that is not enabled, nor one whose steps are made."""
    model, optimizer, scaler = made(65536.0)
    disabled = torch.amp.GradScaler("cpu", enabled=False)
    with tnp.follow() as run:
        step_of(model, optimizer, scaler)
    assert not any("scale" in one for one in run.problems)
    assert run._record.scaling.was_used
    scaler.update(4.0)
    with tnp.follow() as run:
        scaler.update(2.5)
    assert run._record.scaling.num_skipped == 0
    del scaler
    with tnp.follow() as run:
        step_of(model, optimizer, disabled)
    assert run._record.scaling is None


def test_no_scaler_is_kept():
    """Its state is what it would be, and it is let go of."""
    import gc
    import weakref

    states = []
    for is_followed in (False, True):
        model, optimizer, scaler = made(65536.0)
        run = tnp.follow()
        if is_followed:
            with run:
                step_of(model, optimizer, scaler, 1e35)
        else:
            step_of(model, optimizer, scaler, 1e35)
        states.append(scaler.state_dict())
    assert states[0] == states[1]
    reference = weakref.ref(scaler)
    del scaler
    gc.collect()
    assert reference() is None

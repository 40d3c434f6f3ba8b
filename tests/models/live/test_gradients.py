"""The norms of gradients, read while nobody else runs code."""

from __future__ import annotations

import math

import pytest
import torch

import tensornp as tnp
from tensornp.core.lowlevel import gradients
from tensornp.core.lowlevel.gradients import Unguarded
from tensornp.models.live.gradients import gradients_of


def trained() -> torch.nn.Module:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    model[1].bias.requires_grad_(False)
    model(torch.ones(5, 3)).square().sum().backward()
    return model


def test_norms_are_those_of_the_gradients(monkeypatch):
    """Of what has one; nothing is changed by it."""
    monkeypatch.setattr(gradients, "backward_runs_elsewhere", lambda: False)
    model, unguarded = trained(), Unguarded()
    before = {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}
    found = gradients_of(tnp.weights(model).values(), unguarded)
    assert {*found} == {"0.weight", "0.bias", "1.weight"}
    for name, (norm, alarm) in found.items():
        assert not alarm
        assert norm == pytest.approx(before[name].double().norm().item())
        assert model.get_parameter(name).grad.equal(before[name])
    assert not unguarded.left_out
    model[0].weight.grad[:] = math.nan
    model[0].bias.grad[1] = math.inf
    found = gradients_of(tnp.weights(model).values(), Unguarded())
    assert found["0.weight"] == (None, "all NaN")
    assert found["0.bias"].alarm == "1 +Inf"


def test_while_others_run_none_is_read(monkeypatch):
    """And it is known that some were left out."""
    monkeypatch.setattr(gradients, "backward_runs_elsewhere", lambda: True)
    unguarded = Unguarded()
    assert gradients_of(tnp.weights(trained()).values(), unguarded) == {}
    assert unguarded.left_out

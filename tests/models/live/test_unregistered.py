"""Tensors and modules that a module holds without having registered them."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

import tensornp as tnp


class Holder(nn.Module):
    def __init__(self, held):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        nn.init.ones_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)
        self.held = held


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda t: t, ["held"]),
        (lambda t: [1, t], ["held.1"]),
        (lambda t: (t, t * 2), ["held.0", "held.1"]),
        (lambda t: {"a": t, "b": {"c": [t + 1]}, "n": 3}, ["held.a", "held.b.c.0"]),
    ],
)
def test_tensors_in_lists_and_dictionaries_are_listed(make, names):
    """Under names and expressions of their own; a parameter in a plain list is a classic mistake."""
    model = Holder(make(nn.Parameter(torch.ones(3))))
    registered = list(dict(model.named_parameters()))
    w = tnp.weights(model)
    others = [name for name in w if name not in registered]
    assert others == [name for name in names if name not in registered]
    for name in others:
        entry = w[name]
        assert eval(entry.code, {"model": model}) is entry.tensor
        assert entry.note.startswith("not registered")
        assert entry._saved_as is None
    assert w.problems == []
    other = Holder(make(nn.Parameter(torch.full((3,), 2.0))))
    assert not tnp.compare(model, other).equal
    assert tnp.compare(model, Holder(make(nn.Parameter(torch.ones(3))))).equal


def test_what_is_registered_is_listed_once():
    """A list of all parameters, or of layers, is kept by many models."""
    model = Holder(None)
    model.held = [*model.parameters(), model.layer]
    model.own = {"first": model.layer.weight}
    w = tnp.weights(model)
    assert list(w) == ["layer.weight", "layer.bias"]
    assert w.problems == []
    model.parent = [Holder(None)]
    model.parent[0].child = model
    assert tnp.weights(model).problems == []


@pytest.mark.parametrize("make", [lambda m: [m, m], lambda m: {"a": {"b": m}}, lambda m: (nn.ReLU(), m)])
def test_modules_in_lists_and_dictionaries_are_told(make):
    """Nobody trains them, and no state dict has them; so two that differ there are not equal."""
    model = Holder(make(nn.Linear(3, 3)))
    w = tnp.weights(model)
    assert "'held." in w.problems[0] and "is not registered, and what they hold is not listed" in w.problems[0]
    assert w.not_listed == tuple(w.problems) and len(w.problems) == 1
    assert not tnp.compare(model, Holder(make(nn.Linear(3, 3)))).equal
    assert tnp.weights(Holder([nn.ReLU()])).problems == []


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).eval()


def loaded(module):
    """Return a scripted module as it comes from its file."""
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    return torch.jit.load(file)


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("make", [torch.jit.script, lambda m: torch.jit.trace(m, torch.ones(1, 2))])
def test_the_weights_of_torchscript_are_those_of_the_module(make, is_loaded):
    """Traced and scripted, made here and loaded: names, values, parameters on the card, and code."""
    model = net()
    scripted = loaded(make(model)) if is_loaded else make(model)
    w = tnp.weights(scripted)
    assert list(w) == list(model.state_dict())
    assert w.problems == []
    for name, value in model.state_dict().items():
        assert torch.equal(eval(w[name].code, {"scripted": scripted}), value)
    assert "4 weights · 13 parameters · 52 bytes" in str(tnp.card(scripted))
    assert tnp.compare(scripted, model).equal
    assert not tnp.compare(make(net()), make(net())).equal

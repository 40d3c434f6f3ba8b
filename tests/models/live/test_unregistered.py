"""What a module holds besides weights: unregistered tensors and modules, and modules without weights."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn
from tree_rows import rows_of

import tensornp as tnp
from tensornp.widget.weights import WeightsWidget


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


class Block(nn.Module):
    """A layer whose modules are registered in another order than they are called."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.25)
        self.conv = nn.Conv2d(3, 5, 3, padding=1)
        self.act = nn.GELU()
        self.none = nn.ModuleList()


def rows(model: nn.Module) -> list[str]:
    """Return the rows of the card without shapes and bytes."""
    lines = str(tnp.card(model)).split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("name")) + 1
    return [" ".join(line.partition("  (")[0].split()) for line in lines[first:]]


def test_modules_without_weights_have_a_row_in_the_order_of_registration():
    """With the settings that differ from the defaults of their class, next to the first weight of others."""
    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Dropout(0.1), nn.Linear(2, 3, bias=False), nn.LayerNorm(3))
    assert rows(model) == [
        "0.weight Linear 4 → 2", "0.bias", "1 ReLU", "2 Dropout p=0.1", "3.weight Linear 2 → 3, no bias",
        "4.weight LayerNorm 3", "4.bias",
    ]  # fmt: skip


def test_those_of_repeated_layers_are_folded():
    """An empty list does nothing, and has no row; one with another activation has rows of its own."""
    model = nn.Sequential(*[Block() for _ in range(4)])
    assert rows(model) == [
        "{0..3}.drop Dropout p=0.25", "{0..3}.conv.weight Conv2d 3 → 5, kernel_size=3, stride=1, padding=1",
        "{0..3}.conv.bias", "{0..3}.act GELU",
    ]  # fmt: skip
    model[2].act = nn.ReLU()
    assert {"{0..1,3}.act GELU", "2.act ReLU"} <= set(rows(model))


def test_parts_of_a_model_have_no_rows_of_other_modules():
    """`find` and prefixes list weights."""
    w = tnp.weights(nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 2)))
    assert "ReLU" in str(tnp.card(w))
    assert "ReLU" not in str(tnp.card(w.find("0.*")))
    assert "ReLU" not in str(tnp.card(w["2"]))


def test_settings_are_asked_of_torch_alone():
    """A class of the user's is named, and its `extra_repr` is not called."""

    class Own(nn.Module):
        def extra_repr(self) -> str:
            raise AssertionError("called")

    w = tnp.weights(nn.Sequential(Own(), nn.Linear(2, 2)))
    assert w.classes["0"] == "Own"


def test_the_live_tree_has_the_same_rows():
    """They are quiet, open nothing, and are found by name or class; a scan of what is listed leaves them out."""
    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 3))
    explorer = tnp.weights(model)
    widget = WeightsWidget(explorer.values(), opened="w", classes=explorer.classes)
    answer = widget._rows({})
    shown = rows_of(answer["html"], answer["head"])
    assert [(one["name"], one["class"], one["quiet"], one["number"] >= 0) for one in shown] == [
        ("0", "Linear 4 → 2", False, False), ("weight", "", False, True), ("bias", "", False, True),
        ("1", "ReLU", True, False),
        ("2", "Linear 2 → 3", False, False), ("weight", "", False, True), ("bias", "", False, True),
    ]  # fmt: skip
    assert shown[3]["open"] is None
    for search, names in {"relu": ["1"], "1": ["1"], "bias": ["0.bias", "2.bias"]}.items():
        found = widget._rows({"search": search})
        assert [(one["name"], one["quiet"]) for one in rows_of(found["html"], found["head"])] == [
            (name, name == "1") for name in names
        ]

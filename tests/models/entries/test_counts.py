"""Totals, ties and counts: each view of weights tells the same numbers, and shared elements count once."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import tensornp as tnp
from tensornp.models.entries.entry import is_counter
from tensornp.render.models.weights import weights_document
from tensornp.widget.weight_tree import WeightTree


def net() -> nn.Module:
    """With names that are None, one weight that is tied, and one of a single element."""
    model = nn.ModuleDict({name: nn.Linear(3, 3, bias=False) for name in ("a", "b")})
    model["b"].weight = model["a"].weight
    model["one"] = nn.Linear(1, 1, bias=False)
    return model


def stepped() -> torch.optim.Optimizer:
    model = net()
    optimizer = torch.optim.SGD([model["a"].weight, model["one"].weight], lr=0.1, momentum=0.5)
    model["one"](torch.ones(1)).sum().backward()
    optimizer.step()
    return optimizer


def written(folder, kind):
    state_dict = {"a.weight": torch.ones(3, 3), "one.weight": torch.ones(1, 1)}
    path = folder / f"weights.{kind}"
    if kind == "safetensors":
        save_file(state_dict, path)
    elif kind == "pt":
        torch.save(state_dict, path)
    else:
        np.savez(path, **{name: one.numpy() for name, one in state_dict.items()})
    return path


# Of each: the names, those of weights, and the parameters.
SOURCES = {
    "module": (lambda folder: net(), 6, 3, 10),
    "part": (lambda folder: tnp.weights(net())["one"], 2, 1, 1),
    "found": (lambda folder: tnp.weights(net()).find("*bias"), 3, 0, 0),
    "nothing": (lambda folder: nn.Identity(), 0, 0, 0),
    "state dict": (lambda folder: net().state_dict(), 3, 3, 10),
    "one tensor": (lambda folder: {"w": torch.ones(1)}, 1, 1, 1),
    "optimizer": (lambda folder: stepped(), 2, 2, 0),
    "safetensors": (lambda folder: written(folder, "safetensors"), 2, 2, 10),
    "pt": (lambda folder: written(folder, "pt"), 2, 2, 10),
    "npz": (lambda folder: written(folder, "npz"), 2, 2, 10),
}


def number_of(noun: str, text: str) -> int:
    """The number that stands before a noun, which is plural unless it is 1."""
    (found,) = re.findall(rf"([\d,]+) {noun}(s?)\b", text.partition("\n")[0])
    assert (found[1] == "") == (found[0] == "1"), text
    return int(found[0].replace(",", ""))


@pytest.mark.parametrize("source", SOURCES)
def test_every_view_tells_the_same_counts(source, tmp_path):
    """A name that is registered as None is no weight."""
    make, num_names, num_weights, parameters = SOURCES[source]
    explorer = tnp.weights(make(tmp_path))
    assert len(explorer) == len(list(explorer)) == len(explorer.to_frame()) == num_names
    assert explorer.totals.parameters == parameters
    assert WeightTree([one for one in explorer.values() if not one._is_nothing], {}).sums.num_weights == num_weights
    heading = re.sub("<[^>]*>", "\n", weights_document(explorer).html()).strip()
    noun = "parameter" if explorer.is_of_module else "element"
    for view in (repr(explorer), weights_document(explorer).text(), heading):
        # Of one of the parameters there is no state yet.
        told = number_of("optimizer state", view) + 1 if source == "optimizer" else number_of("weight", view)
        assert told == num_weights
        # States are no parameters, and the heading counts none.
        assert source == "optimizer" or number_of(noun, view) == parameters
    scanned = explorer.scan(progress=False)
    assert len(scanned) + len(scanned.failed) == num_weights


def test_a_file_does_not_call_buffers_parameters(tmp_path):
    """Which of its tensors are parameters, it does not tell; what is known to be one is called so."""
    norm = nn.BatchNorm1d(7)
    torch.save(norm.state_dict(), tmp_path / "norm.pt")
    torch.save(dict(norm.named_parameters()), tmp_path / "own.pt")
    states = {"state": {0: {"exp_avg": torch.ones(3)}}, "param_groups": [{"params": [0]}]}
    for source, told in (
        (norm, "14 parameters"), (norm.state_dict(), "29 elements"), (tmp_path / "norm.pt", "29 elements"),
        (tmp_path / "own.pt", "14 parameters"),
        ({"w": torch.ones(2), "opt": states}, "2 elements besides states"),
    ):  # fmt: skip
        explorer = tnp.weights(source)
        assert f", {told}, " in repr(explorer)
        assert f" · {told} · " in weights_document(explorer).text()


def counters(explorer) -> set[str]:
    return {name for name, one in explorer.items() if is_counter(one)}


def test_integer_buffers_count(tmp_path):
    """In a module any of int64, and masks; codes of quantized weights do not, nor what a file calls otherwise."""
    module = torch.nn.BatchNorm1d(3)
    module.register_buffer("index", torch.arange(4))
    module.register_buffer("mask", torch.ones(2, dtype=torch.bool))
    module.register_buffer("qweight", torch.ones(2, dtype=torch.int32))
    assert counters(tnp.weights(module)) == {"num_batches_tracked", "index", "mask"}
    save_file(module.state_dict(), tmp_path / "m.safetensors")
    assert counters(tnp.weights(tmp_path / "m.safetensors")) == {"num_batches_tracked"}


@pytest.mark.parametrize("is_file", [False, True], ids=["in memory", "in a file"])
def test_names_of_the_same_elements_are_tied(tmp_path, is_file):
    """Whatever tensors refer to them; other parts, orders and copies of the bytes are weights of their own."""
    flat = torch.arange(100.0)
    made = {
        "flat": flat, "twin": flat.detach(), "head": flat[:20], "turned": flat[:20].view(4, 5).t(),
        "copy": flat.clone(), "empty": flat[:0], "nothing": flat[:0],
    }  # fmt: skip
    torch.save(made, tmp_path / "a.pt")
    explorer = tnp.weights(tmp_path / "a.pt" if is_file else made)
    assert {name: one.tied_to for name, one in explorer.items() if one.tied_to} == {
        "flat": ("twin",), "twin": ("flat",)
    }  # fmt: skip
    assert explorer.totals.nbytes == 800


def test_tied_layers_are_folded():
    """Their names differ, and that each has another name does not."""
    flat = torch.randn(8, 10)
    made = {f"layers.{i}.{name}": flat[i] for i in range(8) for name in ("a", "b")}
    text = weights_document(tnp.weights(made)).text()
    assert "layers.{0..7}.a" in text
    assert "tied" in text


def test_looking_for_relations_touches_nothing():
    """No array is made of any, so that storages stay as they were."""
    made = {"flat": torch.arange(100.0), "one": torch.ones(3, 4)}
    tnp.weights(made)
    for tensor in made.values():
        assert tensor.untyped_storage().resizable()
        assert tensor._version == 0


def test_parameters_that_a_state_dict_has_twice_count_once(tmp_path):
    """As in the model that ties them; a scan says no more of them than that, however many there are."""
    layers = torch.nn.ModuleList(torch.nn.Linear(8, 8, bias=False) for _ in range(30))
    for layer in layers:
        layer.weight = layers[0].weight
    state = layers.state_dict()
    torch.save(state, tmp_path / "a.pt")
    explorers = [tnp.weights(source) for source in (layers, state, tmp_path / "a.pt")]
    assert {explorer.totals.parameters for explorer in explorers} == {64}
    for explorer in explorers:
        table = explorer.scan()
        assert not any(table.findings(name) for name in table)
    copies = {**state, "own": state["0.weight"].clone()}
    table = tnp.weights(copies).scan()
    assert [one.text for one in table.findings("own")] == ["the same values as '0.weight'"]
    assert [one.text for one in table.findings("17.weight")] == ["the same values as 'own'"]


def test_a_buffer_over_a_parameter_takes_nothing_from_the_totals():
    """Whichever of the two comes first."""

    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(10, 10, bias=False)
            self.register_buffer("flat", self.linear.weight.data)

    assert tnp.weights(Flat()).totals == (100, 100, 400)

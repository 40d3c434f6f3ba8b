"""Which weights have the same elements, in memory and in a file of torch, and that these count once."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.render.models.weights import weights_document


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

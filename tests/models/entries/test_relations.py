"""Which weights share bytes: the same words as those of `tnp.aliases`, in memory and in a file of torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensornp as tnp
from tensornp.render.models.weights import weights_document


def shared() -> dict[str, torch.Tensor]:
    """Weights that lie in one storage each, in every way."""
    flat = torch.arange(100.0)
    one = torch.ones(3, 4)
    return {
        "flat": flat, "head": flat[:20], "same": flat[:20], "gaps": flat[::2], "others": flat[1::2],
        "turned": flat[:20].view(4, 5).t(), "one": one, "tied": one, "own": torch.arange(100.0),
    }  # fmt: skip


def told(explorer: tnp.WeightsExplorer) -> dict[str, set[tuple[str, str]]]:
    """Return the relations by name."""
    return {name: {tuple(one) for one in entry.related} for name, entry in explorer.items() if entry.related}


@pytest.mark.parametrize("is_file", [False, True], ids=["in memory", "in a file"])
def test_weights_in_the_same_bytes_name_each_other(tmp_path, is_file):
    """By what is true of their bytes; what is tied is one object, and columns side by side share nothing."""
    made = shared()
    torch.save(made, tmp_path / "a.pt")
    found = told(tnp.weights(tmp_path / "a.pt" if is_file else made))
    head = {("overlapping", "flat"), ("reinterpreted", "turned"), ("overlapping", "gaps"), ("overlapping", "others")}
    same = set() if is_file else {("same elements", "same")}
    assert found.pop("head") == head | same
    assert found.pop("flat") == {
        ("overlapping", name) for name in ("head", "gaps", "others", "turned", *(() if is_file else ["same"]))
    }
    assert ("overlapping", "others") not in found.pop("gaps")
    assert set(found) == {"others", "turned", "same"}
    assert tnp.weights(made)["one"].tied_to == ("tied",)


def test_an_array_and_a_tensor_of_its_memory_are_related():
    """Though torch knows of two storages."""
    array = np.arange(10.0)
    explorer = tnp.weights({"array": array, "tensor": torch.from_numpy(array), "part": array[3:5]})
    assert told(explorer)["tensor"] == {("same elements", "array"), ("overlapping", "part")}


def test_layers_that_share_bytes_in_the_same_way_are_folded():
    """Their names differ, and their relation does not."""
    flat = torch.randn(8, 10)
    made = {f"layers.{i}.{name}": flat[i] for i in range(8) for name in ("a", "b")}
    text = weights_document(tnp.weights(made)).text()
    assert "layers.{0..7}.a" in text
    assert "same elements" in text


def test_bytes_that_several_names_have_count_once_in_the_tree():
    """As they do in the totals."""
    from tensornp.models.outline.outline import Outline

    flat = torch.zeros(10)
    explorer = tnp.weights({"a": flat, "b": flat.view(10), "c": flat.view(2, 5)})
    assert Outline(list(explorer.values())).sums[1:] == (10, 40)
    assert explorer.totals.nbytes == 40


def test_looking_for_relations_touches_nothing():
    """No array is made of any, so that storages stay as they were."""
    made = shared()
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
    """Whichever of the two comes first; and the same elements are told before what merely overlaps."""

    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(10, 10, bias=False)
            self.register_buffer("flat", self.linear.weight.data)

    assert tnp.weights(Flat()).totals == (100, 100, 400)
    whole = torch.randn(16, 16)
    made = {**{f"p{i}": whole[:i] for i in range(1, 13)}, "whole": whole, "twin": whole.detach()}
    explorer = tnp.weights(made)
    assert explorer["whole"].related[0] == ("same elements", "twin")
    assert len(explorer["whole"].related) == 10
    assert not [one for one in explorer.scan().findings("whole") if "same values" in one.text]

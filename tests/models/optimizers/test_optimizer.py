"""The state of optimizers: by the names of parameters, which the optimizer has, or a model, or nobody."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tensornp as tnp
from tensornp.render.models.weights import weights_document


@pytest.fixture
def model():
    """A module with a layer that is not trained yet."""
    return nn.ModuleDict({"fc": nn.Linear(3, 2), "late": nn.Linear(2, 2)})


def trained(model, parameters=None, **options):
    optimizer = torch.optim.AdamW(parameters or model.parameters(), lr=0.25, betas=(0.5, 0.75), **options)
    model["fc"](torch.ones(3)).sum().backward()
    optimizer.step()
    return optimizer


NAMES = [f"state.fc.{name}.{kind}" for name in ("weight", "bias") for kind in ("step", "exp_avg", "exp_avg_sq")]


def test_an_option_of_zero_is_told_and_one_that_is_off_is_not(model):
    """No weight decay is a choice: the default of AdamW is another number."""
    text = tnp.card(trained(model, weight_decay=0.0)).text
    assert "weight_decay: 0 ·" in text and "amsgrad" not in text


def test_names_come_from_the_optimizer_or_a_model_in_the_namespace(model):
    """What has no state yet has none after it was listed; rates are metadata; each expression runs."""
    by_model = trained(model)
    explorers = {id(by_model): (by_model, tnp.weights(by_model, namespace={"m": model, "by_model": by_model}))}
    named = trained(model, list(model.named_parameters()))
    explorers[id(named)] = named, tnp.weights(named)
    for optimizer, explorer in explorers.values():
        assert list(explorer) == [*NAMES, "state.late.weight", "state.late.bias"]
        assert len(optimizer.state) == 2
        assert {entry.kind for entry in explorer.values()} == {"state"}
        assert explorer["state.late.bias"].problem == "no state yet"
        assert "no values: no state yet" in weights_document(explorer).text()
        assert "frozen" not in weights_document(explorer).text()
        for name in NAMES:
            assert eval(explorer[name].code, {"by_model": by_model, "named": named}) is explorer[name].tensor
        assert explorer.metadata["param_groups.0.lr"] == 0.25
        assert (explorer.metadata["param_groups.0.betas.0"], explorer.metadata["param_groups.0.betas.1"]) == (0.5, 0.75)
        assert "param_groups.0.params" not in explorer.metadata


def test_without_names_the_place_is_the_name(model):
    """Of two groups; and next to a model that has other parameters."""
    groups = [{"params": [model["fc"].weight]}, {"params": [model["fc"].bias], "lr": 0.5}]
    optimizer = trained(model, groups)
    by_other = tnp.weights(optimizer, namespace={"other": nn.Linear(1, 1)}, expression="o.inner")
    for explorer in (tnp.weights(optimizer, namespace={}), by_other):
        assert list(explorer)[1] == "state.param_groups[0].params[0].exp_avg"
        assert list(explorer)[4] == "state.param_groups[1].params[0].exp_avg"
        assert explorer.metadata["param_groups.1.lr"] == 0.5
    assert explorer[list(explorer)[1]].code == "o.inner.state[o.inner.param_groups[0]['params'][0]]['exp_avg']"


def test_a_state_dict_has_its_names_as_notes(model):
    explorer = tnp.weights(trained(model, list(model.named_parameters())).state_dict())
    assert explorer["state.1.exp_avg"].note == "of 'fc.bias'"
    assert explorer["state.1.exp_avg"].kind == "state"
    assert explorer.totals.elements_stored == 2 * (6 + 2) + 2


def test_names_come_from_the_modules_of_a_notebook(model):
    """From the first module that has all parameters, else from all modules."""
    optimizer = trained(model)
    assert list(tnp.weights(optimizer)) == [*NAMES, "state.late.weight", "state.late.bias"]
    assert list(tnp.weights(optimizer, namespace={"m": model}))[:6] == NAMES
    assert next(iter(tnp.weights(optimizer, namespace={}))) == "state.param_groups[0].params[0].step"
    two = {"head": model["late"], "fc": model["fc"]}
    assert list(tnp.weights(optimizer, namespace=two))[-1] == "state.head.bias"
    assert list(tnp.weights(optimizer, namespace={"part": model["fc"]}))[-1] == "state.param_groups[0].params[3]"


class WithAlias(nn.Module):
    """The embedding lies deep, and the head that it is tied to does not."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Sequential(nn.Embedding(3, 2)))
        self.head = nn.Linear(2, 3, bias=False)
        self.head.weight = self.encoder[0][0].weight


def test_a_state_of_tied_weights_has_the_first_name():
    """Not the one that a search meets first, wherever the model lies."""
    net = WithAlias()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    assert list(tnp.weights(optimizer, namespace={"net": net})) == ["state.encoder.0.0.weight"]


FORMATS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}
PLACES = {
    "alone": (lambda saved: saved, "state."),
    "in a checkpoint": (lambda saved: {"model": {"w": torch.ones(3)}, "any": saved, "epoch": 3}, "any.state."),
    "in a list": (lambda saved: {"optimizer_states": [{"state": {}, "param_groups": []}, saved]},
                  "optimizer_states.1.state."),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("source", ["param_names", "none"])
def test_a_saved_state_has_the_notes_of_one_in_memory(model, tmp_path, kind, place, source):
    """Wherever it lies in a file; states are no parameters of a model."""
    named = list(model.named_parameters()) if source == "param_names" else None
    put, begins = PLACES[place]
    saved = trained(model, named).state_dict()
    tree = put(saved)
    torch.save(tree, tmp_path / "opt.pt", **FORMATS[kind])
    in_memory, explorer = tnp.weights(tree), tnp.weights(tmp_path / "opt.pt")
    assert {name: (one.kind, one.note) for name, one in explorer.items()} == {
        name: (one.kind, one.note) for name, one in in_memory.items()
    }
    assert explorer[f"{begins}1.exp_avg"].kind == "state"
    for number, name in enumerate(["fc.weight", "fc.bias"]):
        for kept in ("step", "exp_avg", "exp_avg_sq"):
            entry = explorer[f"{begins}{number}.{kept}"]
            assert entry.note == ("" if source == "none" else f"of {name!r}")
            assert (entry.to_numpy() == saved["state"][number][kept].numpy()).all()
    assert explorer.totals.parameters == (3 if place == "in a checkpoint" else 0)


def test_a_state_dict_by_names_needs_no_notes(tmp_path):
    by_name = {"state": {"fc.weight": {"exp_avg": torch.ones(2, 3)}}, "param_groups": [{"params": ["fc.weight"]}]}
    torch.save(by_name, tmp_path / "named.pt")
    for found in (tnp.weights(tmp_path / "named.pt"), tnp.weights(by_name)):
        assert [(one.kind, one.note) for one in found.values()] == [("state", "")]


def test_what_only_looks_like_a_state_dict_is_listed(tmp_path):
    """Whatever is where groups, parameters and names should be."""
    odd = [{"params": 3, "param_names": ["a"]}, {"params": [[], None, 0], "param_names": ["a", "b", "c"]}, 5, None]
    for tree in (
        {"state": {0: {"w": torch.ones(2)}}, "param_groups": odd}, {"state": [torch.ones(2)], "param_groups": []},
        {"state": {(0,): torch.ones(2), None: torch.ones(3)}, "param_groups": {}},
    ):  # fmt: skip
        torch.save(tree, tmp_path / "x.pt")
        explorer, in_memory = tnp.weights(tmp_path / "x.pt"), tnp.weights(tree)
        assert [one.note for one in explorer.values()] == [one.note for one in in_memory.values()]
        assert [one.kind for one in explorer.values()] == [one.kind for one in in_memory.values()]
    torch.save({"state": {0: {"w": torch.ones(2)}}, "param_groups": odd}, tmp_path / "x.pt")
    assert tnp.weights(tmp_path / "x.pt")["state.0.w"].note == "of 'c'"


def test_states_of_optimizers_are_no_weights(tmp_path):
    """In the heading of a checkpoint, and of an optimizer alone; what scales a weight is no state of one."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c.pt")
    told = "2 weights and 6 optimizer states"
    explorer = tnp.weights(tmp_path / "c.pt")
    assert told in repr(explorer)
    assert told in tnp.card(explorer).text
    assert "6 optimizer states" in repr(tnp.weights(optimizer))
    assert "weight" not in repr(tnp.weights(optimizer)).partition(": ")[2].partition(",")[0]
    assert "2 weights," in repr(tnp.weights(model))

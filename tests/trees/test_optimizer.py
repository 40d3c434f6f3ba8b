"""The state of optimizers: by the names of parameters, which the optimizer has, or a model, or nobody."""

from __future__ import annotations

import pytest
import torch
from older import since
from torch import nn

import tensornp as tnp
from tensornp.render.weights import weights_text


@pytest.fixture
def model():
    """A module with a layer that is not trained yet."""
    return nn.ModuleDict({"fc": nn.Linear(3, 2), "late": nn.Linear(2, 2)})


def trained(model, parameters=None, **options):
    optimizer = torch.optim.AdamW(parameters or model.parameters(), lr=0.25, betas=(0.5, 0.75), **options)
    model["fc"](torch.ones(3)).sum().backward()
    optimizer.step()
    return optimizer


TAKES_NAMES = since("2.6", "an optimizer takes names")
NAMES = [f"state.fc.{name}.{kind}" for name in ("weight", "bias") for kind in ("step", "exp_avg", "exp_avg_sq")]


@TAKES_NAMES
def test_names_come_from_the_optimizer_or_a_model(model):
    """What has no state yet has none after it was listed; rates are metadata; each expression runs."""
    by_model = trained(model)
    explorers = {id(by_model): (by_model, tnp.weights(by_model, model=model))}
    named = trained(model, list(model.named_parameters()))
    explorers[id(named)] = named, tnp.weights(named)
    for optimizer, explorer in explorers.values():
        assert list(explorer) == [*NAMES, "state.late.weight", "state.late.bias"]
        assert len(optimizer.state) == 2
        assert {entry.kind for entry in explorer.values()} == {"state"}
        assert explorer["state.late.bias"].problem == "no state yet"
        assert "no values: no state yet" in weights_text(explorer)
        assert "frozen" not in weights_text(explorer)
        for name in NAMES:
            assert eval(explorer[name].code, {"optimizer": optimizer}) is explorer[name].tensor
        assert explorer.metadata["param_groups[0].lr"] == 0.25
        assert explorer.metadata["param_groups[0].betas"] == (0.5, 0.75)
        assert "param_groups[0].params" not in explorer.metadata


def test_without_names_the_place_is_the_name(model):
    """Of two groups; and of a model that has other parameters."""
    groups = [{"params": [model["fc"].weight]}, {"params": [model["fc"].bias], "lr": 0.5}]
    optimizer = trained(model, groups)
    by_other = tnp.weights(optimizer, model=nn.Linear(1, 1), expression="o.inner")
    for explorer in (tnp.weights(optimizer, namespace={}), by_other):
        assert list(explorer)[1] == "state.param_groups[0].params[0].exp_avg"
        assert list(explorer)[4] == "state.param_groups[1].params[0].exp_avg"
        assert explorer.metadata["param_groups[1].lr"] == 0.5
    assert explorer[list(explorer)[1]].code == "o.inner.state[o.inner.param_groups[0]['params'][0]]['exp_avg']"
    with pytest.raises(tnp.BadRequestError, match="model is the module whose parameters are optimized, not a int"):
        tnp.weights(optimizer, model=3)


def test_state_that_is_nested_and_names_that_repeat(model):
    """LBFGS has lists; two parameters may have been given one name."""
    optimizer = torch.optim.LBFGS(model["fc"].parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = (model["fc"](torch.ones(3)) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    explorer = tnp.weights(optimizer, model=model)
    assert "state.fc.weight.old_dirs.0" in explorer
    for entry in explorer.values():
        if not entry.problem:
            assert eval(entry.code, {"optimizer": optimizer}) is entry.tensor
    # Two groups that were named each for itself.
    adam = trained(model)
    adam.param_groups[0]["param_names"] = ["w"] * 4
    assert len(tnp.weights(adam)) == 8


@pytest.mark.parametrize("source", [pytest.param("param_names", marks=TAKES_NAMES), "model", "none"])
def test_a_state_dict_has_names_as_notes(model, source):
    """Which keys do not tell; of a model with another number of parameters there are none."""
    parameters = list(model.named_parameters()) if source == "param_names" else None
    state_dict = trained(model, parameters).state_dict()
    explorer = tnp.weights(state_dict, model=model if source == "model" else nn.Linear(1, 1))
    assert explorer["state.1.exp_avg"].note == ("" if source == "none" else "of 'fc.bias'")
    assert explorer["state.1.exp_avg"].kind == "state"
    assert explorer.totals.elements_stored == 2 * (6 + 2) + 2


def test_names_come_from_what_the_notebook_reaches(model):
    """From the module that has all parameters; else from the names by which each is reached; and nothing runs."""
    optimizer = trained(model)
    assert list(tnp.weights(optimizer)) == [*NAMES, "state.late.weight", "state.late.bias"]
    assert list(tnp.weights(optimizer, namespace={"m": model}))[:6] == NAMES

    class Trainer:
        @property
        def model(self):
            raise AssertionError("a property ran")

    trainer = Trainer()
    trainer.net = model
    first = [next(iter(tnp.weights(optimizer, namespace=names))) for names in ({"trainer": trainer}, {})]
    assert first == ["state.trainer.net['fc'].weight.step", "state.param_groups[0].params[0].step"]
    two = {"head": model["late"], "fc": model["fc"]}
    assert list(tnp.weights(optimizer, namespace=two))[-1] == "state.head.bias"
    assert list(tnp.weights(optimizer, namespace={"part": model["fc"]}))[-1] == "state.param_groups[0].params[3]"

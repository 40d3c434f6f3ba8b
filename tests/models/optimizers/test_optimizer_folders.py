"""Optimizers in folders of `torch.distributed.checkpoint`, and in the files that torch makes of them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict
from written_dcp import save

import tensornp as tnp
from tensornp.render.models.weights import weights_document

NAMES = ["fc.weight", "fc.bias", "late.weight", "late.bias"]
STATES = [f"state.{name}.{kept}" for name in NAMES for kept in ("step", "exp_avg", "exp_avg_sq")]


@pytest.fixture
def model() -> nn.Module:
    """Two layers."""
    return nn.ModuleDict({"fc": nn.Linear(3, 2), "late": nn.Linear(2, 2)})


def trained(model: Any, parameters: Any = None, **options: Any) -> torch.optim.Optimizer:
    optimizer = torch.optim.AdamW(parameters or model.parameters(), **options)
    model["late"](model["fc"](torch.ones(3))).sum().backward()
    optimizer.step()
    return optimizer


def by_name(model: Any, optimizer: Any, **options: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return get_optimizer_state_dict(model, optimizer, options=StateDictOptions(**options))


def is_flat_known() -> bool:
    return "flatten_optimizer_state_dict" in StateDictOptions.__dataclass_fields__


def flat(model: Any, optimizer: Any) -> dict[str, Any]:
    if not is_flat_known():
        pytest.skip("this torch does not join the keys")
    return by_name(model, optimizer, flatten_optimizer_state_dict=True)


FORMS = {
    "names": lambda model, optimizer: {"model": model.state_dict(), "optim": by_name(model, optimizer)},
    "numbers": lambda model, optimizer: {"model": model.state_dict(), "opt": optimizer.state_dict(), "epoch": 3},
    "flat": lambda model, optimizer: {"model": model.state_dict(), "optimizer": flat(model, optimizer)},
    "flat, beside weights": lambda model, optimizer: {**model.state_dict(), **flat(model, optimizer)},
    "names, alone": by_name,
    "numbers, alone": lambda _, optimizer: optimizer.state_dict(),
    "flat, alone": flat,
    "deep": lambda model, optimizer: {"app": {"all": [{"model": model.state_dict()}, by_name(model, optimizer)]}},
}


def facts(explorer: tnp.WeightsExplorer) -> dict[str, Any]:
    return {name: (one.kind, one.note, one._saved_as) for name, one in explorer.items()}


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_has_the_states_of_an_optimizer(model, tmp_path, form):
    """They count among no parameters, and pair with those in memory, by names or numbers; so do those of a file."""
    optimizer = trained(model)
    save(FORMS[form](model, optimizer), FileSystemWriter(tmp_path / "x"))
    dcp_to_torch_save(tmp_path / "x", tmp_path / "x.pt")
    explorer, live = tnp.weights(tmp_path / "x"), tnp.weights(optimizer)
    assert list(live) == STATES
    states = [name for name, one in explorer.items() if one.kind == "state"]
    assert len(states) == len(STATES)
    assert explorer.totals.parameters == (0 if "alone" in form else 14)
    assert explorer.problems == []
    assert "state" in repr(explorer[states[0]])
    assert ("besides states" in repr(explorer)) == ("alone" not in form)
    assert facts(tnp.weights(tmp_path / "x.pt")) == facts(explorer)
    assert facts(tnp.weights(torch.load(tmp_path / "x.pt", weights_only=True))) == facts(explorer)
    for path in (tmp_path / "x", tmp_path / "x.pt"):
        found = tnp.compare(optimizer, path)
        assert list(found._pairs) == STATES
        assert (found.missing, set(found._pairs.values())) == ((), set(states))
        assert [found.max_abs[name] for name in STATES] == [0] * len(STATES)
    before = explorer[states[1]].to_numpy()
    optimizer.step()
    assert (tnp.weights(optimizer)[STATES[1]].to_numpy() != before).any()
    assert tnp.compare(optimizer, tmp_path / "x").max_abs[STATES[1]] > 0


def test_a_model_names_the_states_that_have_numbers(model, tmp_path):
    """In the order of the groups that lie beside them; of another model it is said why not."""
    save(FORMS["numbers"](model, trained(model)), FileSystemWriter(tmp_path / "x"))
    dcp_to_torch_save(tmp_path / "x", tmp_path / "x.pt")
    for path in (tmp_path / "x", tmp_path / "x.pt"):
        explorer = tnp.weights(path, model=model)
        assert [explorer[f"opt.state.{i}.exp_avg"].note for i in range(4)] == [f"of {name!r}" for name in NAMES]
        assert "of 'late.bias'" in weights_document(explorer).text()
        says = "not named by this model, which has 2 parameters, where the optimizer has 4; leave model out"
        with pytest.raises(tnp.BadRequestError, match=says):
            tnp.weights(path, model=model["fc"])


def test_names_that_groups_tell_are_read(model, tmp_path):
    """Of each group; what else is told stays as it is."""
    groups = [{"params": [*model["late"].named_parameters()]}, {"params": [*model["fc"].named_parameters()], "lr": 0.5}]
    save({"opt": trained(model, groups).state_dict()}, FileSystemWriter(tmp_path))
    explorer = tnp.weights(tmp_path)
    assert explorer["opt.state.2.exp_avg"].note == "of 'weight'"
    assert explorer.metadata["opt.param_groups.1.param_names"] == ["weight", "bias"]
    assert explorer.metadata["opt.param_groups.0.betas"] == (0.9, 0.999)
    assert explorer.metadata["opt.param_groups.1.lr"] == 0.5


def test_states_that_are_nested_keep_their_keys(tmp_path):
    """As of Shampoo, also where keys are joined; a parameter may be called as a part of an optimizer."""
    names, state = ("a.state.lr", "b"), {"exp_avg": torch.ones(2), "factors": {"left": {"0": torch.ones(3)}}}
    joined: dict[str, Any] = {f"param_groups.{name}.{key}": 0.5 for name in names for key in ("lr", "eps")}
    joined |= {f"state.{name}.exp_avg": torch.ones(2) for name in names}
    joined |= {f"state.{name}.factors.left.0": torch.ones(3) for name in names}
    nested = {"state": dict.fromkeys(names, state), "param_groups": [{"lr": 0.5, "params": [*names]}]}
    for number, tree in enumerate((joined, nested)):
        save({"optim": tree}, FileSystemWriter(tmp_path / str(number)))
        for explorer in (tnp.weights(tmp_path / str(number)), tnp.weights({"optim": tree})):
            assert {one.kind for one in explorer.values()} == {"state"}
            assert explorer["optim.state.a.state.lr.factors.left.0"]._saved_as[0] == "state.a.state.lr.factors.left.0"

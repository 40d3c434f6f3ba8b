"""The state of optimizers: by the names of parameters, which the optimizer has, or a model, or nobody."""

from __future__ import annotations

import copy
import sys

import pytest
import torch
from torch import nn

import tensornp as tnp
from tensornp.core.namespace.search import search
from tensornp.render.models.comparison import weights_comparison_document
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
        assert "no values: no state yet" in weights_document(explorer).text()
        assert "frozen" not in weights_document(explorer).text()
        for name in NAMES:
            assert eval(explorer[name].code, {"by_model": by_model, "named": named}) is explorer[name].tensor
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
    with pytest.raises(tnp.BadRequestError, match="model is the module whose parameters are optimized, not an int"):
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


@pytest.mark.parametrize("source", ["param_names", "model", "none"])
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


def test_parameters_are_found_past_optimizers_and_schedulers():
    """Those reach the parameters by less steps than a deep model, and by no name of their own."""
    model = nn.Sequential(*(nn.TransformerEncoderLayer(8, 2, 16) for _ in range(3)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 1)
    model(torch.ones(1, 1, 8)).sum().backward()
    opt.step()
    trainer = {"opt": opt, "schedulers": [scheduler]}
    names = {"opt": opt, "scheduler": scheduler, "trainer": trainer, "model": model}
    explorer = tnp.weights(opt, namespace=names)
    assert list(explorer) == [f"state.{name}.momentum_buffer" for name, _ in model.named_parameters()]
    assert "state.{0..2}.self_attn.out_proj.weight.momentum_buffer" in weights_document(explorer).text()


def with_states_of_its_own(model, of_all=1.0, option=1.0):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.state["of all"] = {"a": torch.full((2,), of_all)}
    optimizer.state["step"] = torch.ones(())
    optimizer.state[model["late"].bias] = torch.ones(2)
    optimizer.param_groups[0]["betas"] = [torch.full((3,), option), 0.5]
    return optimizer


def test_states_of_no_parameter_and_options_in_lists_are_listed(model):
    """As the state dict has them: two optimizers that differ in one of them are not equal."""
    first = with_states_of_its_own(model)
    explorer = tnp.weights(first)
    assert [name for name, one in explorer.items() if not one.problem] == [
        "param_groups.0.betas.0", "state.late.bias", "state.of all.a", "state.step",
    ]  # fmt: skip
    for entry in explorer.values():
        assert entry.problem or eval(entry.code, {"first": first}) is entry.tensor
    assert tnp.compare(first, with_states_of_its_own(model)).equal
    assert tnp.compare(first, first.state_dict()).equal
    assert not tnp.compare(first, with_states_of_its_own(model, of_all=2)).equal
    assert not tnp.compare(first, with_states_of_its_own(model, option=2)).equal


class Preconditioner:
    """Holds a tensor as no container does."""

    def __init__(self):
        self.factor = torch.ones(2)


@pytest.mark.parametrize("place", ["a state", "what is no parameter", "an option"])
def test_what_is_not_looked_into_is_named_and_never_equal(model, place):
    """An object with tensors in a state or in a group."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.state[model["fc"].bias]["kept"] = torch.ones(2)
    held = {
        "a state": optimizer.state[model["fc"].bias], "what is no parameter": optimizer.state["all"],
        "an option": optimizer.param_groups[0],
    }[place]  # fmt: skip
    held["p"] = Preconditioner()
    [problem] = tnp.weights(optimizer).problems
    assert problem.startswith("1 object was not looked into: ") and problem.endswith(".p (Preconditioner)")
    assert not tnp.compare(optimizer, optimizer).equal
    [problem] = tnp.weights({"opt": optimizer, "model": model}).problems
    assert problem.startswith("'opt': 1 object was not looked into: ")


class StandsFor(torch.optim.Optimizer):
    """Hands on what the optimizer that it holds as `name` has, as accelerate's and Lightning's do."""

    def __init__(self, inner, name):
        self.__dict__[name] = inner

    @property
    def state(self):
        raise AssertionError("a property ran")

    param_groups = state


@pytest.mark.parametrize("names", [["optimizer"], ["_optimizer"], ["optimizer", "_optimizer"]])
def test_what_stands_for_an_optimizer_lists_the_states_of_that(model, names):
    """Alone or beside the model; no property of it runs, and its expressions do."""
    first, second = trained(model), trained(model)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    second.state[model["fc"].bias]["exp_avg"] += 1
    sides = [first, second]
    for name in names:
        sides = [StandsFor(one, name) for one in sides]
    explorer = tnp.weights(sides[0], expression="opt", namespace={"model": model})
    assert list(explorer)[:6] == NAMES and not explorer.problems
    assert eval(explorer[NAMES[1]].code, {"opt": sides[0]}) is first.state[model["fc"].weight]["exp_avg"]
    assert tnp.compare(*sides).changed() == ["state.fc.bias.exp_avg"]
    assert tnp.compare(*({"m": model, "o": one} for one in sides)).changed() == ["o.state.fc.bias.exp_avg"]
    assert tnp.compare(first.state_dict(), sides[0]).equal


@pytest.mark.parametrize("name", ["base", "optimizer"])
def test_an_optimizer_whose_states_are_not_seen_is_never_equal(model, name):
    """What its properties give is not asked, whatever it holds; nor does one end that stands for itself."""
    hidden = StandsFor(None, name)
    hidden.__dict__[name] = trained(model) if name == "base" else hidden
    assert tnp.weights(hidden).not_listed[0].startswith("state and param_groups of the optimizer are no attributes")
    for one in (hidden, {"m": model, "o": hidden}):
        found = tnp.compare(one, one)
        assert not found.equal and "no attributes of its own" in found._not_listed[0]


def test_what_an_optimizer_holds_beside_its_states_is_named(model):
    """Another optimizer, or tensors of its own; not what torch puts there, nor a scheduler."""
    optimizer = trained(model)
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.register_step_post_hook(lambda *_: model)
    assert tnp.weights(optimizer).problems == []
    optimizer.base, optimizer.slow = trained(model), [torch.ones(2)]
    assert tnp.weights(optimizer).problems == ["2 objects were not looked into: base (AdamW), slow (list)"]
    assert not tnp.compare(optimizer, optimizer).equal


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

    class Trainer:
        pass

    trainer = Trainer()
    trainer.net, trainer.optimizer = net, optimizer
    for names, name in (
        ({"net": net}, "encoder.0.0.weight"),
        ({"trainer": trainer}, "trainer.net.encoder[0][0].weight"),
        ({"kept": {"net": net}}, "kept['net'].encoder[0][0].weight"),
    ):
        assert list(tnp.weights(optimizer, namespace=names)) == [f"state.{name}"]


def test_many_optimizers_are_named_by_one_search(monkeypatch):
    """And by none where all have names; an optimizer is not looked into, whichever of them it is."""
    nets = [nn.Sequential(nn.Linear(1, 1)) for _ in range(20)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    searched = []
    module = sys.modules["tensornp.models.live.optimizer"]
    monkeypatch.setattr(module, "search", lambda *args, **kw: searched.append(args) or search(*args, **kw))
    names = {"optimizers": optimizers, "deep": [[nets]]}
    assert list(tnp.weights(optimizers, namespace=names))[-1] == "19.state.deep[0][0][19][0].bias"
    assert list(tnp.weights(optimizers, namespace={}))[-1] == "19.state.param_groups[0].params[1]"
    assert len(searched) == 2


def test_what_keeps_a_copy_of_an_optimizer_is_its_own_state_dict(model):
    """Beside its state dict, which is the same memory, no model is spoken of."""
    adam = trained(model)
    assert "adam.state_dict() shares it; copy.deepcopy(adam.state_dict())" in told(tnp.compare(adam, adam.state_dict()))
    optimizers = [adam]
    in_list = tnp.weights(adam, expression="optimizers[0]")
    assert "copy.deepcopy(optimizers[0].state_dict())" in told(tnp.compare(adam.state_dict(), in_list))
    both = {"model": model, "adam": adam}
    for kept in (optimizers[0].state_dict(), both):
        assert "a copy that is made before a step, as by copy.deepcopy, keeps what was" in told(tnp.compare(kept, kept))
    found = tnp.compare(*(tnp.weights(both, expression="both") for _ in range(2)))
    assert "as by copy.deepcopy(both), keeps" in told(found)


def told(found):
    return weights_comparison_document(found).text()


FORMATS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}
PLACES = {
    "alone": (lambda saved: saved, "state."),
    "in a checkpoint": (lambda saved: {"model": {"w": torch.ones(3)}, "any": saved, "epoch": 3}, "any.state."),
    "in a list": (lambda saved: {"optimizer_states": [{"state": {}, "param_groups": []}, saved]},
                  "optimizer_states.1.state."),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("source", ["param_names", "model", "none"])
def test_a_saved_state_has_the_notes_of_one_in_memory(model, tmp_path, kind, place, source):
    """Wherever it lies in a file; states are no parameters of a model."""
    named = list(model.named_parameters()) if source == "param_names" else None
    put, begins = PLACES[place]
    saved = trained(model, named).state_dict()
    tree = put(saved)
    torch.save(tree, tmp_path / "opt.pt", **FORMATS[kind])
    options = {"model": model} if source == "model" else {}
    in_memory = tnp.weights(tree, **options)
    explorer = tnp.weights(tmp_path / "opt.pt", **options)
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


def test_a_model_that_names_nothing_in_a_file_is_refused(model, tmp_path):
    """In one sentence: of another number of parameters, of other shapes, and where there is no optimizer."""
    torch.save(trained(model).state_dict(), tmp_path / "opt.pt")
    torch.save(model.state_dict(), tmp_path / "model.pt")
    turned = nn.ModuleDict({"fc": nn.Linear(2, 3), "late": nn.Linear(2, 2)})
    for path, other, says in (
        (
            "opt.pt",
            nn.Linear(1, 1),
            "not named by this model, which has 2 parameters, where the optimizer has 4;",
        ),
        ("opt.pt", nn.Identity(), "which has 0 parameters"),
        ("opt.pt", turned, r"whose 'fc.weight' has shape \(3, 2\), where state 0 has \(2, 3\); leave model out"),
        (
            "model.pt",
            model,
            r"there is no state of an optimizer in '.*model.pt' that model could name;",
        ),
        ("opt.pt", 3, "model is the module whose parameters are optimized, not an int"),
    ):
        with pytest.raises(tnp.BadRequestError, match=says) as raised:
            tnp.weights(tmp_path / path, model=other)
        assert "\n" not in str(raised.value)


def test_of_two_optimizers_a_model_names_its_own(model, tmp_path):
    """As of a generator and a discriminator; what has its own names, or texts as keys, needs none."""
    other = nn.Linear(5, 1)
    sgd = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.5)
    other(torch.ones(5)).sum().backward()
    sgd.step()
    saved = {"g": trained(model).state_dict(), "d": sgd.state_dict()}
    torch.save(saved, tmp_path / "opt.pt")
    explorer = tnp.weights(tmp_path / "opt.pt", model=other)
    assert explorer["d.state.1.momentum_buffer"].note == "of 'bias'"
    assert explorer["g.state.1.exp_avg"].note == ""
    by_name = {"state": {"fc.weight": {"exp_avg": torch.ones(2, 3)}}, "param_groups": [{"params": ["fc.weight"]}]}
    torch.save(by_name, tmp_path / "named.pt")
    for found in (tnp.weights(tmp_path / "named.pt", model=model), tnp.weights(by_name, model=model)):
        assert [(one.kind, one.note) for one in found.values()] == [("state", "")]


def test_of_several_groups_the_order_is_no_guess(tmp_path):
    """Layers of one shape may have been given in any order, as for learning rates by layer: nobody is named wrongly."""
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(3)))
    groups = [{"params": layer.parameters(), "lr": 0.1 / (i + 1)} for i, layer in enumerate(reversed(model))]
    opt = torch.optim.AdamW(groups)
    model(torch.randn(2, 8)).sum().backward()
    opt.step()
    explorer = tnp.weights(opt.state_dict(), model=model)
    assert {one.note for one in explorer.values()} == {""}
    assert "the states are not named by this model, whose order in it is not told" in explorer.problems[0]
    with pytest.raises(tnp.BadRequestError, match="model is the module whose parameters are optimized, not an int"):
        tnp.weights({"w": torch.ones(3)}, model=5)
    torch.save(opt.state_dict(), tmp_path / "opt.pt")
    says = "whose order in it is not told, where the optimizer has 3 groups and no param_names; leave model out"
    with pytest.raises(tnp.BadRequestError, match=says):
        tnp.weights(tmp_path / "opt.pt", model=model)
    assert next(iter(tnp.weights(opt, namespace={"model": model}))) == "state.2.weight.step"


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

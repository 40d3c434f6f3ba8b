"""Weights in memory: each name of modules and dictionaries, the expression that reaches it, and three totals."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from unchanged import unchanged

import tensornp as tnp


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)) for _ in range(3)])
        self.heads = nn.ModuleDict({"a b": nn.Linear(4, 10, bias=False)})
        self.heads["a b"].weight = self.embed.weight
        self.lazy = nn.LazyLinear(3)
        self.register_parameter("nothing", None)
        self.register_buffer("passing", torch.zeros(2), persistent=False)
        self.wide = nn.Parameter(torch.zeros(1).expand(10, 100))
        self.loose = torch.ones(3)
        self.layers[0][0].weight.requires_grad_(False)


def test_each_name_of_a_module_is_listed_and_reached():
    """Tied, lazy, None, not persistent, expanded, not registered; the code gives the object itself."""
    model = Model()
    explorer = tnp.weights(model)
    with unchanged(model.embed.weight):
        for name, entry in explorer.items():
            if entry.problem != "it is registered as None":
                assert eval(entry.code, {"model": model}) is entry.tensor, name
    assert set(model.state_dict()) | {"passing", "loose", "nothing", "heads.a b.bias"} == set(explorer)
    assert explorer["heads.a b.weight"].tied_to == ("embed.weight",)
    assert explorer["embed.weight"].tied_to == ("heads.a b.weight",)
    assert explorer["lazy.weight"].shape is None
    assert "lazy" in explorer["lazy.weight"].problem
    assert explorer["nothing"].problem == "it is registered as None"
    assert explorer["passing"].note == "not in the state dict"
    assert (explorer["loose"].kind, explorer["loose"].note) == ("tensor", "not registered")
    assert (explorer["wide"].note, explorer["wide"].nbytes, explorer["wide"].numel) == ("expanded", 4, 1000)
    assert not explorer["layers.0.0.weight"].requires_grad
    assert explorer["layers.1.0.weight"].requires_grad
    assert {entry.kind for entry in explorer.values()} == {"parameter", "buffer", "tensor"}


def test_the_totals_count_each_once():
    """Parameters as the model has them, elements and bytes as memory has them."""
    model = Model()
    totals = tnp.weights(model).totals
    known = {id(p): p.numel() for p in model.parameters() if not nn.parameter.is_lazy(p)}
    assert totals.parameters == sum(known.values())
    stored = sum(known.values()) - 999 + sum(b.numel() for b in model.buffers()) + 3
    assert totals.elements_stored == stored
    every = [t for t in [*model.parameters(), *model.buffers(), model.loose] if not nn.parameter.is_lazy(t)]
    held = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in every}
    assert totals.nbytes == sum(held.values())


@pytest.mark.slow
def test_compiled_and_parallel_modules_show_their_own_names():
    """Their prefixes stay in the expression."""
    model = nn.Sequential(nn.Linear(2, 2))
    compiled = torch.compile(model)
    entry = tnp.weights(compiled)["0.weight"]
    assert entry.code == "compiled._orig_mod[0].weight"
    assert list(tnp.weights(nn.DataParallel(model))) == ["0.weight", "0.bias"]


def test_a_part_is_an_explorer_too():
    """By a prefix, by a glob, by part of a name, by a regular expression."""
    explorer = tnp.weights(Model())
    assert list(explorer["layers.1"]) == [name for name in explorer if name.startswith("layers.1.")]
    assert list(explorer["layers"]["layers.2"]) == list(explorer["layers.2."])
    assert (
        set(explorer.find("*.running_*"))
        == set(explorer.find(re.compile(r"\.running_")))
        == set(explorer.find("running"))
    )
    assert len(explorer.find("nowhere")) == 0
    assert "embed.weight" in explorer
    assert "embed" not in explorer
    assert 3 not in explorer
    with pytest.raises(KeyError) as raised:
        explorer["embed.wieght"]
    assert str(raised.value) == "there is no weight 'embed.wieght' in Model; the closest is 'embed.weight'"
    for ask in (lambda: explorer[3], lambda: explorer[[]], lambda: explorer.find(3)):
        with pytest.raises(tnp.TensornpError):
            ask()
    assert repr(explorer).startswith("<WeightsExplorer of Model: ")


def test_nested_dictionaries_join_their_keys():
    """What is no tensor is told beside; two ways to one name are numbered."""
    array = np.arange(4.0)
    tree = {"model": {"a.b": torch.ones(2), "a": {"b": torch.zeros(3)}}, "step": 7, "ema": [array], "name": "x"}
    explorer = tnp.weights(tree)
    assert list(explorer) == ["model.a.b", "model.a.b (2)", "ema.0"]
    assert explorer.metadata == {"step": 7, "name": "x"}
    for entry in explorer.values():
        assert eval(entry.code, {"tree": tree}) is (array if entry.kind == "array" else entry.tensor)
    assert explorer.totals == (9, 9, 52)


def test_values_are_those_of_the_tensor():
    """At an index too; shared where that is possible, widened where NumPy has no such dtype; and so are statistics."""
    model = nn.Linear(6, 4).to(torch.bfloat16)
    model.weight.data[1, 2] = float("nan")
    entry = tnp.weights(model)["weight"]
    with unchanged(model.weight):
        assert np.array_equal(entry.to_numpy((slice(1, 3), -1)), tnp.to_numpy(model.weight)[1:3, -1])
        assert entry.stats() == tnp.stats(model.weight)
        assert entry.plan(0).dtype == np.float32
    assert model.weight.grad_fn is None
    with pytest.raises(tnp.BadRequestError, match="index 9 is out of bounds"):
        entry.to_numpy(9)
    array = tnp.weights({"a": np.arange(6)})["a"]
    assert array.to_numpy(slice(1, 3)).tolist() == [1, 2]
    assert not array.to_numpy().flags.writeable
    assert array.to_numpy(copy=True).flags.writeable
    assert array.stats().max == 5


def test_an_explorer_that_is_closed_lets_go():
    """Of all tensors."""
    model = nn.Linear(2, 2)
    there, explorer = weakref.ref(model.weight), tnp.weights(model)
    del model
    gc.collect()
    assert there() is not None
    for _ in range(2):
        explorer.close()
    gc.collect()
    assert there() is None
    assert repr(explorer) == "<WeightsExplorer of Linear (closed): 0 weights, 0 parameters, 0 bytes>"
    with pytest.raises(tnp.NoSuchWeightError, match=r"in Linear \(closed\)"):
        explorer["weight"]


def test_a_module_that_holds_itself_ends():
    """Also by way of another."""
    model = nn.Linear(2, 2)
    model.child = nn.Linear(2, 2)
    model.child.parent = [model]
    model.child.add_module("back", model)
    assert list(tnp.weights(model)) == ["weight", "bias", "child.weight", "child.bias"]


def test_other_tensors_are_listed_with_what_they_are():
    """On meta, sparse, quantized; none of them is read."""
    tree = {
        "meta": torch.zeros(3, device="meta"), "sparse": torch.eye(100).to_sparse(),
        "view": torch.zeros(1000)[:10],
    }  # fmt: skip
    explorer = tnp.weights(tree)
    assert "meta" in explorer["meta"].problem
    with pytest.raises(tnp.NoDataError):
        explorer["meta"].to_numpy()
    assert explorer["sparse"].nbytes == 100 * (2 * 8 + 4)
    assert explorer["view"].note == "view of a larger storage: 10 of 1,000 elements used, 3.9 KiB held"
    assert explorer.totals.nbytes == 4000 + 2000


@pytest.mark.slow
def test_a_checkpoint_of_long_lists_is_listed(monkeypatch):
    """Of a history of numbers the first are told; of more values than are looked at, that is a problem."""
    from tensornp.models.live import listing

    explorer = tnp.weights({"history": [0.5] * 100_000, "w": torch.ones(3)})
    assert list(explorer) == ["w"]
    assert len(explorer.metadata) == listing.MAX_SAID
    assert not explorer.problems
    monkeypatch.setattr(listing, "MAX_LEAVES", 1000)
    explorer = tnp.weights({"w": torch.ones(3), "history": [0.5] * 5000})
    assert list(explorer) == ["w"]
    assert explorer.problems == ["it has more than 1,000 values, and the others are not listed"]


@pytest.mark.parametrize("make", [lambda: nn.Linear(3, 2), lambda: {"a": torch.ones(2)}, lambda: [torch.ones(2)]])
def test_code_begins_with_a_name_that_the_caller_has(make):
    """Of what no name reaches there is none, rather than one that raises NameError; a history is no name."""
    mine = make()
    for entry in tnp.weights(mine).values():
        assert eval(entry.code, {"mine": mine}) is entry.tensor
        assert entry.code in tnp.card(entry).text
    given = next(iter(tnp.weights(mine, namespace={"_": mine, "_3": mine, "net": mine}).values()))
    assert given.code.startswith("net")
    for explorer in (tnp.weights(make()), tnp.weights(mine, namespace={"_": mine, "_3": mine})):
        for entry in explorer.values():
            assert entry.code == ""
            assert "code" not in tnp.card(entry).text
    assert next(iter(tnp.weights(mine, expression="its").values())).code.startswith("its")


@pytest.mark.parametrize("same", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_an_explorer_can_be_pickled_and_copied(same, tmp_path):
    """Whether it lists a module, or what lies in memory or in a file."""
    made = {"w": torch.ones(3)}
    torch.save({**made, "epoch": 3}, tmp_path / "x.pt")
    for source in (nn.Linear(2, 2), made, tmp_path / "x.pt"):
        explorer = tnp.weights(source)
        other = same(explorer)
        assert repr(other) == repr(explorer)
        assert (other.metadata, other.classes) == (explorer.metadata, explorer.classes)
        for name, entry in explorer.items():
            assert np.array_equal(other[name].to_numpy(), entry.to_numpy())


def test_what_a_checkpoint_says_of_itself_comes_before_what_its_optimizer_does(tmp_path):
    """The epoch is not lost behind the options of a group."""
    model = nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    torch.save({"optimizer": optimizer.state_dict(), "model": model.state_dict(), "epoch": 3}, tmp_path / "ck.pt")
    text = str(tnp.card(tnp.weights(tmp_path / "ck.pt")))
    assert text.index("epoch: 3") < text.index("param_groups.0.lr: 0.001")

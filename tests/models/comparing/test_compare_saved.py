"""Whatever is compared with itself, its state dict or its file is equal: modules and optimizers of every make."""

from __future__ import annotations

import copy
import itertools
from html import unescape
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file, save_model
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

import tensornp as tnp
from tensornp.render.models.comparison import weights_comparison_document


class Rotary(nn.Module):
    """As of a Llama: a buffer that is not persistent, one that is None, and a tensor that is not registered."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("inv_freq", torch.arange(4.0), persistent=False)
        self.register_buffer("nothing", None)
        self.mask = torch.ones(3)


class Tied(nn.Module):
    """Of which a file keeps one of two names."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 3)
        self.head = nn.Linear(3, 4, bias=False)
        self.head.weight = self.embed.weight


class Extra(nn.Linear):
    """With a state of its own."""

    def get_extra_state(self) -> torch.Tensor:
        return torch.ones(3)

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Take nothing."""


def hooked() -> nn.Module:
    return nn.Sequential(nn.utils.spectral_norm(nn.Linear(2, 2)))


def parametrized() -> nn.Module:
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)))


MODULES = {
    "buffers that are not persistent": Rotary,
    "registered as None": lambda: nn.Sequential(nn.Linear(2, 2, bias=False), nn.BatchNorm1d(2, affine=False)),
    "tied": Tied,
    "extra state": lambda: nn.Sequential(Extra(2, 2)),
    "lazy": lambda: nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d(), nn.Linear(2, 2)),
    "parametrized": parametrized,
    "hooked": hooked,
    "checkpointed inside": lambda: nn.Sequential(checkpoint_wrapper(nn.Linear(2, 2)), nn.Linear(2, 2)),
    "parallel inside": lambda: nn.Sequential(nn.DataParallel(nn.Linear(2, 2))),
    "wrapped twice": lambda: nn.Sequential(torch.compile(checkpoint_wrapper(nn.Linear(2, 2)))),
}


def saved_in_every_way(model, folder):
    state_dict = model.state_dict()
    torch.save(state_dict, folder / "model.pt")
    yield from (model, tnp.weights(model), state_dict, folder / "model.pt")
    if not any(map(torch.nn.parameter.is_lazy, model.parameters())):
        save_model(model, str(folder / "model.safetensors"))
        yield folder / "model.safetensors"


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODULES)
def test_a_module_is_equal_to_all_that_is_saved_of_it(kind, tmp_path):
    """With the model, both ways, and with the next one; the line, the text, the HTML and the frame say so too."""
    model = MODULES[kind]()
    sources = list(saved_in_every_way(model, tmp_path))
    for first, second in {(0, i) for i in range(5)} | {(i, 0) for i in range(5)} | {(2, 3), (3, 4)}:
        if max(first, second) == len(sources):
            continue
        found = tnp.compare(sources[first], sources[second])
        assert found.same_bits, (first, second, found)
        assert (found.missing, found.unexpected, found.failed) == ((), (), {})
        assert repr(found).startswith("WeightsComparison(equal: same bits")
        assert ": same bits" in weights_comparison_document(found).text()
        assert ">same bits<" in weights_comparison_document(found).html()
        assert len(found.to_frame()) == len(found) >= 1
    found = tnp.compare(model, model.state_dict())
    name, other = list(found._pairs.items())[-1]
    changed = dict(model.state_dict())
    changed[other] = changed[other] + 1
    assert tnp.compare(model, changed).changed() == [name]
    del changed[other]
    assert tnp.compare(model, changed).equal == (kind == "tied")


def test_what_need_not_be_in_both_is_told_apart_from_what_is_missing():
    """With the reason, and which side has it; a name that a state dict must have is missing all the same."""
    model = Rotary()
    state_dict = model.state_dict()
    found = tnp.compare(model, state_dict)
    told = {"inv_freq": "not persistent", "mask": "not registered"}
    assert found._exempt == told
    assert "2 exempt ('inv_freq', …)" in repr(found)
    for view in (weights_comparison_document(found).text(), weights_comparison_document(found).html()):
        assert "1 on one side, not persistent: inv_freq" in view
    found = tnp.compare(state_dict, model)
    assert found._exempt["inv_freq"] == "not persistent"
    del state_dict["fc.bias"]
    found = tnp.compare(model, state_dict)
    assert (found.missing, found.equal) == (("fc.bias",), False)
    assert list(found._exempt) == ["inv_freq", "mask"]


def cut(path):
    path.write_bytes(path.read_bytes()[:60])


@pytest.mark.parametrize("spoil", [cut, Path.unlink, lambda path: path.write_text("text")])
def test_what_is_not_listed_makes_nothing_equal(spoil, tmp_path):
    """A part that cannot be read, or is missing, may hold what differs: also beside itself; the reason is shown."""
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
        for number in (1, 2):
            weights = {f"{number}.w": torch.full((3,), number)}
            save_file(weights, tmp_path / name / f"model-0000{number}-of-00002.safetensors")
    second = tmp_path / "broken" / "model-00002-of-00002.safetensors"
    spoil(second)
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    assert tnp.compare(whole, whole).same_bits
    for pair, side in (((broken, broken), "both"), ((broken, whole), "broken"), ((whole, broken), "broken")):
        found = tnp.compare(*pair)
        assert not (found.equal or found.same_bits)
        [why] = found._not_listed
        assert why.startswith(f"{side}: ")
        assert second.name in why
        [reason] = (tnp.weights(broken).scan()).not_listed
        assert f"not all is listed: {reason}" in tnp.card(tnp.weights(broken).scan()).text
        assert "(not equal: " in repr(found)
        for shown in (weights_comparison_document(found).text(), unescape(weights_comparison_document(found).html())):
            assert "what was compared" in repr(found)
            assert f"not all is listed of {why}" in shown


def test_a_tied_weight_that_only_a_dictionary_lacks_is_missing(tmp_path):
    """Two dictionaries in memory say what they have; and so does a model whose tie was cut."""
    state_dict = Tied().state_dict()
    kept = {"embed.weight": state_dict["embed.weight"]}
    assert tnp.compare(state_dict, kept).missing == ("head.weight",)
    torch.save(kept, tmp_path / "model.pt")
    assert tnp.compare(state_dict, tmp_path / "model.pt")._exempt == {"head.weight": "tied to another name"}
    model = Tied()
    model.head.weight = nn.Parameter(model.head.weight.detach().clone())
    assert tnp.compare(model, kept).missing == ("head.weight",)


OPTIMIZERS = {
    "Adam amsgrad": {"amsgrad": True}, "Adam fused": {"fused": True}, "AdamW": {}, "SGD": {},
    "SGD momentum": {"momentum": 0.9}, "Adagrad": {}, "RMSprop centered": {"momentum": 0.5, "centered": True},
    "Rprop": {}, "NAdam": {}, "ASGD": {}, "LBFGS": {"max_iter": 3}, "SparseAdam": {}, "Adafactor": {}, "Muon": {},
}  # fmt: skip
"""Classes of torch.optim that keep unlike states."""


def trained(kind: str, num_groups: int = 1) -> tuple[nn.ModuleDict, torch.optim.Optimizer, list[torch.Tensor]]:
    """A model of which a layer is frozen, and its optimizer before the first step."""
    cls = getattr(torch.optim, kind.partition(" ")[0], None)
    if cls is None:
        pytest.skip(f"this torch has no {kind}")
    torch.manual_seed(0)
    if kind == "SparseAdam":
        model = nn.ModuleDict({"embed": nn.Embedding(4, 3, sparse=True), "other": nn.Embedding(4, 3, sparse=True)})
    else:
        model = nn.ModuleDict({name: nn.Linear(4, 3, bias=kind != "Muon") for name in ("fc", "frozen", "out")})
        model["out"] = nn.Linear(3, 2, bias=kind != "Muon")
        model["frozen"].requires_grad_(False)
    params = list(model.parameters())
    groups = [{"params": params[:1]}, {"params": params[1:]}] if num_groups == 2 else params
    return model, cls(groups, lr=0.01, **OPTIMIZERS[kind]), params


def step(model: nn.ModuleDict, optimizer: torch.optim.Optimizer) -> None:
    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        made = model["embed"](torch.tensor([0, 2])) if "embed" in model else model["out"](model["fc"](torch.ones(4)))
        loss = made.pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)


def names_in(state_dict: dict[str, object]) -> list[str]:
    """The tensors of a state dict of an optimizer, found by hand."""

    def below(value: object, name: str) -> list[str]:
        if isinstance(value, torch.Tensor):
            return [name]
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [found for key, one in pairs for found in below(one, f"{name}.{key}")]

    return below(state_dict["state"], "state")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "num_groups"), zip(OPTIMIZERS, itertools.cycle((1, 2))))
def test_an_optimizer_is_equal_to_itself_its_copy_and_what_is_saved_of_it(kind, num_groups, tmp_path):
    """Before the first step and after some; by names, where a model is seen, and without; a later step is unequal."""
    model, optimizer, _ = trained(kind, num_groups)
    earlier = None
    for num_steps in (0, 1):
        if num_steps:
            step(model, optimizer)
        state_dict = optimizer.state_dict()
        torch.save(state_dict, tmp_path / "opt.pt")
        torch.save({"model": None, "optimizer": state_dict}, tmp_path / "checkpoint.pt")
        by_model = tnp.weights(optimizer, namespace={"m": model})
        sources = {
            "live": optimizer, "by model": by_model, "copy": copy.deepcopy(optimizer),
            "state dict": state_dict, "file": tmp_path / "opt.pt", "checkpoint": tmp_path / "checkpoint.pt",
        }  # fmt: skip
        names = names_in(state_dict)
        for how, other in sources.items():
            found = tnp.compare(optimizer, other)
            assert found.same_bits, (how, num_steps, found)
            assert len(found) == len(names)
        assert list(tnp.weights(state_dict)) == list(tnp.weights(tmp_path / "opt.pt")) == names
        assert sum(not one.problem for one in by_model.values()) == len(names)
        if earlier is not None and names:
            found = tnp.compare(optimizer, earlier)
            assert not found.equal
            assert found.changed() or found.missing
        earlier = copy.deepcopy(state_dict)

"""Weights of a module that lie elsewhere than in its tables: put aside, packed, computed, in tensors of tensors."""

from __future__ import annotations

import copy
import types

import accelerate
import accelerate.hooks
import accelerate.utils.offload
import numpy as np
import pytest
import torch
import torch.nn.utils.parametrize
from child import in_fork
from torch import nn
from torch.nn.utils import parametrizations
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.live.refind import reached, released_rows
from tensornp.render.models.weights import weights_document
from tensornp.widget.weight_tree import WeightTree

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


class Net(nn.Module):
    """Several dtypes, a tensor without dimensions, and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.own = nn.Parameter(torch.randn(3, dtype=torch.float16))
        self.fc = nn.Linear(8, 4).bfloat16()
        self.norm = nn.BatchNorm1d(4)
        self.fc.bias.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.fc(x.bfloat16()).float()) + self.own.sum()


def values_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def same(array: object, tensor: torch.Tensor) -> bool:
    """Return whether an array has the values of a tensor, as torch widens them."""
    wide = tensor.dequantize() if tensor.is_quantized else tensor
    wide = wide.float() if wide.dtype in (torch.bfloat16, torch.float8_e4m3fn) else wide
    return np.array_equal(array, wide.detach().numpy())


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_offloaded_weights_are_read_on_request(tmp_path, place):
    """Facts and totals are those of the parameters; the hook's map gives the values."""
    model = Net()
    known = values_of(model)
    if place == "disk":
        accelerate.disk_offload(model, tmp_path, offload_buffers=True)
    else:
        accelerate.cpu_offload(model, offload_buffers=True)
    w = tnp.weights(model)
    assert set(w) == set(known)
    for name, tensor in known.items():
        entry = w[name]
        assert (entry.shape, entry.dtype, entry.problem) == (tuple(tensor.shape), str(tensor.dtype)[6:], "")
        assert (entry.note, entry.location) == ("offloaded by accelerate", "accelerate")
        assert entry.kind == ("buffer" if "running" in name or "num" in name else "parameter")
        assert entry.requires_grad == (entry.kind == "parameter" and name != "fc.bias")
        assert same(entry.to_numpy(), tensor)
        assert entry.stats() == tnp.stats(tensor)
        assert torch.equal(eval(entry.code, {"model": model}), tensor), name
    part = (slice(1, 3), -1)
    assert same(w["fc.weight"].to_numpy(part), known["fc.weight"][part])
    assert w.totals == (47, sum(t.numel() for t in known.values()), sum(t.nbytes for t in known.values()))
    table = w.scan()
    assert table.complete
    assert {name: table[name] for name in table} == {name: tnp.stats(tensor) for name, tensor in known.items()}
    assert all(parameter.is_meta for parameter in model.parameters())


def test_an_offloaded_file_that_is_gone_is_an_error_of_its_weight(tmp_path):
    """The other weights are read."""
    model = accelerate.disk_offload(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), tmp_path)
    (tmp_path / "0.weight.dat").unlink()
    w = tnp.weights(model)
    with pytest.raises(tnp.NoDataError, match="cannot be made"):
        w["0.weight"].to_numpy()
    assert w["1.weight"].stats().count == 4


def test_packed_weights_are_unpacked_when_asked():
    """By code that gives the same; what is not listed is named."""
    model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 4), nn.LSTM(4, 3)), {nn.Linear, nn.LSTM})
    w = tnp.weights(model)
    assert list(w) == ["0.weight"] and len(w.problems) == 1
    assert same(w["0.weight"].to_numpy(), eval(w["0.weight"].code, {"model": model}))


def test_a_tensor_of_tensors_is_listed_with_what_it_stores():
    """torchao: logical shape and dtype, the bytes of the tensors inside, and no false ties."""
    import torchao.quantization as ao

    model = nn.Sequential(nn.Linear(128, 128), nn.Linear(128, 128)).bfloat16()
    config = getattr(ao, "Int8WeightOnlyConfig", None) or ao.int8_weight_only
    ao.quantize_(model, config())
    w = tnp.weights(model)
    for i in (0, 1):
        entry, tensor = w[f"{i}.weight"], model[i].weight
        inner = innermost(tensor)
        assert (entry.shape, entry.dtype, entry.tied_to) == ((128, 128), "bfloat16", ())
        assert entry.nbytes == sum(one.untyped_storage().nbytes() for one in inner.values())
        assert entry.note == type(tensor).__name__
        assert same(entry.to_numpy(), tensor.dequantize())
    biases = [layer.bias for layer in model]
    every = [one for layer in model for one in innermost(layer.weight).values()] + biases
    assert w.totals.parameters == 2 * (128 * 128 + 128)
    assert w.totals.elements_stored == sum(one.numel() for one in every)
    assert w.totals.nbytes == sum(one.untyped_storage().nbytes() for one in every)


def innermost(tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the tensors that have the storages of a wrapper, as the class itself names them."""
    found = {}
    for name in tensor.__tensor_flatten__()[0]:
        inner = getattr(tensor, name)
        found |= innermost(inner) if hasattr(inner, "__tensor_flatten__") else {name: inner}
    return found


class Grown(nn.Module):
    """A parametrization of which the original has another shape than the weight."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.outer(x)

    def right_inverse(self, weight: torch.Tensor) -> torch.Tensor:
        return weight[0].clone()


def parametrized() -> nn.Module:
    torch.manual_seed(0)
    model = nn.ModuleDict({
        "normed": parametrizations.weight_norm(nn.Linear(3, 7)),
        "spectral": parametrizations.spectral_norm(nn.Linear(3, 7)),
        "square": parametrizations.orthogonal(nn.Linear(3, 7)), "grown": nn.Linear(3, 3), "both": nn.Linear(3, 7),
    })  # fmt: skip
    torch.nn.utils.parametrize.register_parametrization(model["grown"], "weight", Grown(), unsafe=True)
    parametrizations.weight_norm(model["both"])
    parametrizations.spectral_norm(model["both"])
    return model


@in_fork
def test_a_weight_that_is_computed_from_freed_memory_is_refused():
    """To copy it would end the process."""
    model = parametrized()
    model["normed"].parametrizations.weight.original1.untyped_storage().resize_(0)
    w = tnp.weights(model)
    with pytest.raises(tnp.TensornpError, match="freed"):
        w["normed.weight"].to_numpy()
    assert w["square.weight"].to_numpy().shape == (7, 3)


NAMES = ["normed", "spectral", "square", "grown", "both"]


def test_a_computed_weight_is_listed_without_being_computed(monkeypatch):
    """With its shape where that is known, and no part in any total."""
    model = parametrized()
    forward = torch.nn.utils.parametrize.ParametrizationList.forward
    calls = []
    monkeypatch.setattr(
        torch.nn.utils.parametrize.ParametrizationList,
        "forward", lambda self: (calls.append(1), forward(self))[1],
    )  # fmt: skip
    w = tnp.weights(model)
    assert set(w) == set(model.state_dict()) | {f"{name}.weight" for name in NAMES}
    computed = [w[f"{name}.weight"] for name in NAMES]
    assert [entry.kind for entry in computed] == ["computed"] * len(NAMES)
    assert [entry.shape for entry in computed[:4]] == [(7, 3), (7, 3), (7, 3), None]
    assert [entry.nbytes for entry in computed] == [0] * len(NAMES)
    assert computed[0].note == "computed from parametrizations.weight.original0, original1"
    assert computed[1].note == "computed from parametrizations.weight.original"
    assert [entry.problem for entry in computed] == [""] * len(NAMES)
    assert w.totals.parameters == sum(p.numel() for p in model.parameters())
    assert w.totals.elements_stored == sum(t.numel() for t in model.state_dict().values())
    assert w.totals.nbytes == 4 * w.totals.elements_stored
    text, page = weights_document(w).text(), weights_document(w).html()
    assert text.count("computed when asked") == page.count("computed when asked") == 1
    assert "computed when asked" in repr(w["grown.weight"])
    assert WeightTree(list(w.values()), {}).sums.numel == w.totals.elements_stored
    table = w.scan()
    assert table.complete
    assert set(table) == set(model.state_dict())
    assert not calls


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_computed_weight_is_what_the_module_gives(name, training):
    """Next time it is asked; buffers, versions and random numbers stay, though a spectral norm writes in training."""
    model = parametrized().train(training)
    entry = tnp.weights(model)[f"{name}.weight"]
    held = [*model.parameters(), *model.buffers()]
    with unchanged(*held):
        array, figures, part = entry.to_numpy(), entry.stats(), entry.to_numpy((slice(1, 3), 0))
        tensor = entry._values()
        plan = entry.plan()
    assert (plan.shares_memory, array.flags.writeable) == (False, True)
    expected = eval(entry.code, {"model": copy.deepcopy(model)}).detach()
    assert entry.shape in (None, tuple(expected.shape))
    assert entry.dtype in ("", "float32")
    assert same(array, expected)
    assert same(part, expected[1:3, 0])
    assert torch.equal(tensor, expected)
    assert not tensor.requires_grad
    assert figures == tnp.stats(expected)
    with pytest.raises(tnp.CopyRequiredError):
        entry.to_numpy(copy=False)


def test_a_parametrization_that_fails_ends_in_a_sentence():
    """Which names the weight; others are scanned."""

    class Failing(nn.Module):
        def forward(self, x):
            if self.is_bad:
                raise ValueError("it is bad")
            return x

        is_bad = False

    model = nn.Linear(2, 2)
    torch.nn.utils.parametrize.register_parametrization(model, "weight", Failing())
    Failing.is_bad = True
    w = tnp.weights(model)
    with pytest.raises(tnp.NoDataError, match=r"'weight' cannot be made \(ValueError: it is bad\)"):
        w["weight"].stats()
    assert set(w.scan()) == {"bias", "parametrizations.weight.original"}
    meta = tnp.weights(parametrizations.weight_norm(nn.Linear(2, 2, device="meta")))
    assert meta["weight"].problem == "what it is computed from is on the meta device"


def test_a_page_finds_each_again_and_holds_none(tmp_path):
    """By expressions: what a page shows keeps no module alive."""
    moved = accelerate.cpu_offload(Net())
    namespace = {"moved": moved, "computed": parametrized()}
    shell = types.SimpleNamespace(user_ns=namespace)
    for name in list(namespace):
        w = tnp.weights(namespace[name], expression=name)
        rows = released_rows(w, shell.user_ns, "")
        for one in rows:
            found = reached(one)
            facts_now = found.name, found.kind, found.shape, found.dtype, found.code, found.requires_grad
            assert facts_now == (one.name, one.kind, one.shape, one.dtype, one.code, one.requires_grad)
            if not found.problem and one.name != "plain.bias":
                assert np.array_equal(found.to_numpy(), w[one.name].to_numpy())
        w.close()
        gone = namespace.pop(name)
        with pytest.raises(tnp.NoDataError):
            reached(rows[0])
        namespace[name] = gone

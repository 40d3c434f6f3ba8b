"""Weights of a module that lie elsewhere than in its tables: put aside, packed, computed, in tensors of tensors."""

from __future__ import annotations

import copy
import functools
import gc
import random
import sys
import threading
import types
import weakref
from collections import defaultdict, deque
from pathlib import Path

import accelerate
import accelerate.hooks
import accelerate.utils.offload
import numpy as np
import pytest
import torch
import torch.nn.utils.parametrize
import torch.nn.utils.prune
from child import in_child, in_fork
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils import parametrizations
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.entries.released import reached
from tensornp.models.live.find import released_from
from tensornp.models.outline.choose import Asked
from tensornp.models.outline.outline import Outline
from tensornp.render.models.weights import weights_document

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

HAS_HALVES = torch.backends.quantized.engine != "qnnpack"
"""QNNPACK packs no halves, and zeros where there is no bias."""


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


@pytest.fixture
def no_hook(monkeypatch):
    """Have whatever accelerate would run to bring a weight fail."""

    def run(*_: object, **__: object) -> None:
        raise AssertionError("a hook has run")

    def forbid() -> None:
        for name in ("pre_forward", "post_forward", "init_hook", "detach_hook"):
            monkeypatch.setattr(accelerate.hooks.AlignDevicesHook, name, run)
        for cls in (accelerate.utils.offload.PrefixedDataset, accelerate.utils.offload.OffloadedWeightsLoader):
            for name in ("__getitem__", "__iter__", "__len__", "__contains__"):
                monkeypatch.setattr(cls, name, run)

    yield types.SimpleNamespace(forbid=forbid, allow=monkeypatch.undo)


def values_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def same(array: object, tensor: torch.Tensor) -> bool:
    """Return whether an array has the values of a tensor, as torch widens them."""
    wide = tensor.dequantize() if tensor.is_quantized else tensor
    wide = wide.float() if wide.dtype in (torch.bfloat16, torch.float8_e4m3fn) else wide
    return np.array_equal(array, wide.detach().numpy())


def test_what_is_offloaded_to_disk_is_read_from_its_files(tmp_path, no_hook):
    """Shape, dtype and place are listed, the bytes of an index are read, and no hook runs."""
    model = Net()
    known = values_of(model)
    accelerate.disk_offload(model, tmp_path, offload_buffers=True)
    no_hook.forbid()
    w = tnp.weights(model)
    assert set(w) == set(known)
    for name, tensor in known.items():
        entry = w[name]
        assert (entry.shape, entry.dtype, entry.problem) == (tuple(tensor.shape), str(tensor.dtype)[6:], "")
        assert entry.note == "offloaded to disk by accelerate"
        assert entry.kind == ("buffer" if "running" in name or "num" in name else "parameter")
        assert entry.location == str(tmp_path)
        assert entry.extents == ((str(tmp_path / f"{name}.dat"), 0, tensor.nbytes),)
        assert entry.requires_grad == (entry.kind == "parameter" and name != "fc.bias")
        assert same(entry.to_numpy(), tensor)
        assert entry.stats() == tnp.stats(tensor)
    part = (slice(1, 3), -1)
    assert same(w["fc.weight"].to_numpy(part), known["fc.weight"][part])
    assert w["fc.weight"].plan(2).nbytes_read == 16
    numel, nbytes = sum(t.numel() for t in known.values()), sum(t.nbytes for t in known.values())
    assert w.totals == (47, numel, nbytes) == (sum(p.numel() for p in model.parameters()), numel, nbytes)
    table = w.scan()
    assert table.complete
    assert {name: table[name] for name in table} == {name: tnp.stats(tensor) for name, tensor in known.items()}
    no_hook.allow()
    for name, tensor in known.items():
        assert torch.equal(eval(w[name].code, {"model": model}), tensor), name
    assert all(parameter.is_meta for parameter in model.parameters())


def test_what_is_offloaded_to_memory_is_the_tensor_of_the_map(no_hook):
    """Its memory is counted once, and what requires a gradient is the parameter."""
    model = Net()
    known = values_of(model)
    accelerate.cpu_offload(model)
    no_hook.forbid()
    w = tnp.weights(model)
    assert set(w) == set(known)
    for name, tensor in known.items():
        assert same(w[name].to_numpy(), tensor)
        assert eval(w[name].code, {"model": model}) is w[name].tensor
        assert w[name].location == "cpu"
    assert w["fc.weight"].note == "offloaded to memory by accelerate"
    assert (w["fc.weight"].requires_grad, w["fc.bias"].requires_grad) == (True, False)
    assert w.totals == (47, sum(t.numel() for t in known.values()), sum(t.nbytes for t in known.values()))
    assert w.scan()["fc.weight"] == tnp.stats(known["fc.weight"])


def test_tied_weights_stay_tied_where_they_are_offloaded_to_memory():
    """Each name has a tensor of its own, over the same elements."""
    model = nn.ModuleDict({"embed": nn.Embedding(10, 4), "head": nn.Linear(4, 10, bias=False)})
    model["head"].weight = model["embed"].weight
    accelerate.cpu_offload(model)
    w = tnp.weights(model)
    assert w["head.weight"].tied_to == ("embed.weight",)
    assert w.totals == (40, 40, 160)


def test_a_dispatched_model_has_some_on_disk_some_in_safetensors_and_some_in_place(tmp_path, no_hook):
    """As a device map has it; of a safetensors file the index gives path and name."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4)))
    known = values_of(model)
    path = str(tmp_path / "model.safetensors")
    save_file({f"stored.{name}": tensor.bfloat16() for name, tensor in known.items() if name[0] == "2"}, path)
    index = {
        name: {"safetensors_file": path, "weight_name": f"stored.{name}", "dtype": "float32"}
        for name in known
        if name[0] == "2"
    }
    accelerate.utils.offload.offload_state_dict(tmp_path, {k: v for k, v in known.items() if k[0] == "1"})
    index |= {name: {"dtype": "float32", "shape": list(known[name].shape)} for name in known if name[0] == "1"}
    accelerate.dispatch_model(
        model, {"0": "cpu", "1": "disk", "2": "disk"}, main_device="cpu", offload_dir=tmp_path, offload_index=index
    )
    no_hook.forbid()
    w = tnp.weights(model)
    assert [w[f"{i}.weight"].location for i in range(2)] + [w["2.0.weight"].location] == ["cpu", str(tmp_path), path]
    assert w["2.0.weight"].note == "offloaded to disk by accelerate, and loaded as float32"
    assert w["2.0.weight"].dtype == "bfloat16"
    no_hook.allow()
    for name, entry in w.items():
        rounded = known[name].bfloat16().float() if name[0] == "2" else known[name]
        assert same(entry.to_numpy(), rounded)
        assert torch.equal(eval(entry.code, {"model": model}), rounded)


def test_a_loader_has_some_in_memory_and_some_on_disk(tmp_path):
    """As where a model is spread over a device, the host and a disk; what is in memory comes first."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    known = values_of(model)
    accelerate.utils.offload.offload_state_dict(tmp_path, {name: tensor + 1 for name, tensor in known.items()})
    in_memory = {name: known[name] for name in ("0.weight", "0.bias")}
    loader = accelerate.utils.offload.OffloadedWeightsLoader(state_dict=in_memory, save_folder=tmp_path)
    accelerate.hooks.attach_align_device_hook(model, execution_device="cpu", offload=True, weights_map=loader)
    w = tnp.weights(model)
    assert [w[f"{i}.bias"].location for i in (0, 1)] == ["cpu", str(tmp_path)]
    for name, entry in w.items():
        assert same(entry.to_numpy(), known[name] + int(name[0]))
        assert torch.equal(eval(entry.code, {"model": model}), known[name] + int(name[0]))
    assert w.totals == (40, 40, 160)


def test_a_hook_of_a_whole_block_has_the_weights_below_it(tmp_path):
    """Of classes that are loaded at once, one hook stands above."""
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 1))))
    known = values_of(model)
    accelerate.disk_offload(model, tmp_path, preload_module_classes=["Sequential"])
    w = tnp.weights(model)
    assert {name: entry.problem for name, entry in w.items()} == dict.fromkeys(known, "")
    for name, entry in w.items():
        assert same(entry.to_numpy(), known[name])
        assert torch.equal(eval(entry.code, {"model": model}), known[name])


def test_a_map_that_is_not_understood_is_not_asked():
    """The weight stays listed, and says who holds it."""
    asked = []

    class Map(dict):
        def __getitem__(self, key):
            asked.append(key)

        __contains__ = get = __getitem__

    model = nn.Linear(2, 2)
    hook = accelerate.hooks.AlignDevicesHook("cpu", offload=True, weights_map=Map())
    accelerate.hooks.add_hook_to_module(model, hook)
    w = tnp.weights(model)
    assert not asked
    assert w["weight"].problem == "it is on the meta device; accelerate's hook holds it"
    assert w["weight"].shape == (2, 2)
    with pytest.raises(tnp.NoDataError, match="accelerate's hook holds it"):
        w["weight"].to_numpy()


def test_a_file_that_is_gone_or_too_short_is_told(tmp_path):
    """The other weights are there; what changes later is told when it is read."""
    model = accelerate.disk_offload(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), tmp_path)
    (tmp_path / "0.weight.dat").unlink()
    (tmp_path / "0.bias.dat").write_bytes(b"1234")
    w = tnp.weights(model)
    assert "cannot be opened: No such file" in w["0.weight"].problem
    assert w["0.bias"].problem.endswith("0.bias.dat' has 4 bytes, and 8 are needed")
    assert w["1.weight"].stats().count == 4
    (tmp_path / "1.bias.dat").write_bytes(b"1234")
    with pytest.raises(tnp.ChangedFileError):
        w["1.bias"].to_numpy()


def test_an_index_that_says_nonsense_is_told(tmp_path):
    """No shape, an unknown dtype, a safetensors file that has no such tensor."""
    model = accelerate.disk_offload(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), tmp_path)
    save_file({"other": torch.ones(2)}, str(tmp_path / "m.safetensors"))
    index = model[0]._hf_hook.weights_map.dataset.index
    index["0.weight"], index["0.bias"]["dtype"] = {"dtype": "float32", "shape": [2, "x"]}, "object"
    index["1.weight"] = {"safetensors_file": str(tmp_path / "m.safetensors")}
    index["1.bias"] = {"safetensors_file": 3}
    problems = [entry.problem for entry in tnp.weights(model).values()]
    assert problems == [
        "accelerate's index has no shape of it",
        "accelerate's index has a dtype of it that is not known, 'object'",
        f"{str(tmp_path / 'm.safetensors')!r} has no tensor '1.weight'",
        "accelerate's index of it is malformed",
    ]


@pytest.mark.slow
@in_child
def test_nothing_is_imported_that_nobody_has_imported():
    """A hook may be there without its library."""
    hook = types.SimpleNamespace(offload=True, weights_map={"weight": torch.ones(2, 2)})
    model = nn.Linear(2, 2, bias=False, device="meta")
    model._hf_hook = hook
    for name in ("accelerate", "torchao", "torch.ao.nn.quantized"):
        for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
            del sys.modules[loaded]
    entry = tnp.weights(model)["weight"]
    assert entry.to_numpy().sum() == 4
    assert not {"accelerate", "torchao"} & set(sys.modules)


def quantized() -> nn.Module:
    torch.manual_seed(0)
    layers = {
        "fc": nn.Linear(8, 4), "plain": nn.Linear(8, 4, bias=False), "rnn": nn.LSTM(4, 3, 2, bidirectional=True),
        "cell": nn.GRUCell(4, 3), "norm": nn.LayerNorm(4),
    }  # fmt: skip
    kinds = {nn.Linear, nn.LSTM, nn.GRUCell}
    return torch.ao.quantization.quantize_dynamic(nn.ModuleDict(layers), kinds)


def test_packed_weights_are_listed_and_unpacked_when_asked(monkeypatch):
    """Those that `parameters()` does not have; the code unpacks the same."""
    model = quantized()
    packer = type(model["fc"]._packed_params)
    unpack, calls = packer._weight_bias, []
    monkeypatch.setattr(packer, "_weight_bias", lambda self: (calls.append(1), unpack(self))[1])
    w = tnp.weights(model)
    weights_document(w).text(), weights_document(w).html(), repr(w), released_from(w, {}, "")
    assert not calls
    assert {name for name in w if name.startswith("rnn")} == {
        f"rnn.{kind}_{side}_l{layer}{way}"
        for kind in ("weight", "bias") for side in ("ih", "hh") for layer in (0, 1) for way in ("", "_reverse")
    }  # fmt: skip
    assert [w[f"fc.{name}"].shape for name in ("weight", "bias")] == [(4, 8), None]
    assert (w["fc.weight"].kind, w["fc.weight"].dtype, w["fc.weight"].nbytes) == ("parameter", "qint8", 32)
    assert w["fc.weight"].note == "packed for dynamic quantization"
    assert w["fc.weight"].requires_grad is False
    packed = [entry for entry in w.values() if "packed" in entry.note and entry.name != "plain.bias"]
    assert len(packed) == 3 + 16 + 4
    for entry in packed:
        tensor = eval(entry.code, {"model": model})
        assert entry.shape in (tuple(tensor.shape), None), entry.name
        assert (entry.dtype, entry.numel) in ((str(tensor.dtype)[6:], tensor.numel()), ("float32", 0))
        assert same(entry.to_numpy(), tensor)
        assert same(entry.to_numpy((slice(1, 3),)), tensor[1:3])
        assert entry.stats() == tnp.stats(tensor)
    assert calls


@pytest.mark.skipif(not HAS_HALVES, reason="QNNPACK packs zeros where there is no bias")
def test_a_bias_that_is_not_there_is_told_when_it_is_read():
    """Only unpacking tells; until then it has no shape, and is not counted."""
    model = quantized()
    w = tnp.weights(model)
    with pytest.raises(tnp.NoDataError, match="the module has none of that name"):
        w["plain.bias"].to_numpy()
    assert w.problems == ["only reading tells whether 2 packed biases are there, and none is counted"]
    rnn = 2 * (12 * 4 + 12 * 3) + 2 * (12 * 6 + 12 * 3)
    packed = 4 * 8 * 2 + rnn + 9 * 4 + 9 * 3
    floats = 16 * 12 // 2 + 2 * 9 + 2 * 4
    beside = 2 * 9  # attributes of the cell, which it does not use
    assert w.totals == (packed + floats, packed + floats + beside, packed + 4 * (floats + beside))
    table = w.scan()
    assert (table.complete, table.failed, table["plain.bias"].count) == (True, {}, 0)
    assert table["fc.weight"] == tnp.stats(model["fc"].weight())


def test_a_shared_packed_weight_is_counted_once():
    """Under two names of one module."""
    layer = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 4)), {nn.Linear})[0]
    w = tnp.weights(nn.ModuleDict({"a": layer, "b": layer}))
    assert w["a.weight"].tied_to == ("b.weight",)
    assert w.totals == (32, 32, 32)


def test_other_packed_modules_have_the_shapes_that_they_unpack():
    """Halves, convolutions, transposed ones, embeddings."""
    nnq = torch.ao.nn.quantized
    model = nn.ModuleDict({
        "fc": nnq.Linear(3, 2), "conv": nnq.Conv2d(4, 6, (3, 2), groups=2),
        "line": nnq.Conv1d(4, 6, 3), "turned": nnq.ConvTranspose2d(4, 6, 3), "embed": nnq.Embedding(10, 12),
    })  # fmt: skip
    if HAS_HALVES:
        half = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 4)), {nn.Linear}, dtype=torch.float16)
        model["halves"] = half[0]
    w = tnp.weights(model)
    for name, module in model.items():
        entry, tensor = w[f"{name}.weight"], module.weight()
        assert entry.shape == tuple(tensor.shape)
        assert same(entry.to_numpy(), tensor)
    assert "halves" not in model or w["halves.weight"].dtype == "float16"
    assert w["embed.weight"].dtype == "quint8"
    assert w["conv.weight"].note == "packed for static quantization"


def test_a_tensor_of_tensors_is_listed_with_what_it_stores():
    """torchao: logical shape and dtype, the bytes and the names of the tensors inside, and no false ties."""
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
        assert entry.note.startswith(f"{type(tensor).__name__}: ")
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


class Pair(torch.Tensor):
    """A wrapper that nobody knows, of two tensors."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} has run")


def test_a_wrapper_that_nobody_knows_names_its_tensors():
    """Nothing of its class runs; its bytes are those of the tensors inside, of which one is shared."""
    shared = torch.ones(2, 3)
    model = nn.Module()
    model.first, model.second = Pair(torch.ones(2, 3), shared), Pair(torch.ones(2, 3).short(), shared)
    w = tnp.weights(model)
    assert w["second"].note == "not registered, Pair: a int16 (2, 3), b float32 (2, 3)"
    assert [w[name].nbytes for name in w] == [48, 36]
    assert [w[name].tied_to for name in w] == [(), ()]
    assert w.totals == (0, 18, 24 + 12 + 24)


class Doubled(nn.Module):
    """A parametrization that writes in all that it reaches, and takes random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.number, self.seen = 0, []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.number += 1
        self.seen.append(x.shape)
        made = 2 * x + torch.randn(()) + np.random.rand()
        x.zero_()
        return made


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
    outline = Outline(list(w.values()))
    assert outline.sums.numel == w.totals.elements_stored
    assert "computed" in outline.choices["kind"]
    only = outline.chosen(Asked(filters=(("kind", "computed"),)))
    assert [one.name for one in only] == [entry.name for entry in computed]
    table = w.scan()
    assert table.complete
    assert set(table) == set(model.state_dict())
    assert not calls
    assert set(w.scan(names=["normed.weight", "square"])) == {"normed.weight", *w["square"]} - {"square.weight"}
    assert calls == [1]
    assert "spectral.weight" in w.scan(names="spectral.weight")


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


def test_a_parametrization_that_writes_leaves_no_mark():
    """In its own buffers and attributes, in what it is computed from, in the state of random numbers."""
    model = nn.Linear(3, 3)
    torch.nn.utils.parametrize.register_parametrization(model, "weight", Doubled(), unsafe=True)
    step = model.parametrizations["weight"][0]
    entry = tnp.weights(model)["weight"]
    with unchanged(*model.parameters(), *model.buffers()):
        first, second = entry.to_numpy(), entry.to_numpy()
    assert np.array_equal(first, second)
    assert (step.number, step.seen) == (0, [])
    with torch.no_grad():
        assert same(first, model.weight)
    assert step.number == 1


def test_a_module_that_a_parametrization_merely_knows_is_not_copied():
    """It may be the whole model; one that is registered is."""

    class Knowing(nn.Module):
        def __init__(self, owner: nn.Module) -> None:
            super().__init__()
            self.owner, self.inner = [owner], nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            met.extend([self.owner[0], self.inner])
            return self.inner(x) * self.owner[0].bias.sum()

    model, met = nn.Linear(2, 2), []
    torch.nn.utils.parametrize.register_parametrization(model, "weight", Knowing(model))
    array = tnp.weights(model)["weight"].to_numpy()
    assert met[-2] is model
    assert met[-1] is not model.parametrizations["weight"][0].inner
    assert same(array, model.weight)


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


def test_a_computed_weight_is_compared_with_a_plain_one_only():
    """A state dict does not lack it; one that was made plain is compared with it."""
    model = parametrizations.weight_norm(nn.Linear(3, 7))
    assert tnp.compare(model, copy.deepcopy(model)).equal
    assert tnp.compare(model, model.state_dict()).equal
    plain = nn.Linear(3, 7)
    plain.load_state_dict({"weight": model.weight.detach(), "bias": model.bias})
    found = tnp.compare(model, plain)
    assert found["weight"].equal
    assert found.missing == ("parametrizations.weight.original0", "parametrizations.weight.original1")


def test_what_a_hook_computes_before_each_forward_says_so():
    """Pruned, and normed as before parametrizations: the tensor is there, as the last forward has left it."""
    model = nn.ModuleDict({
        "normed": nn.utils.weight_norm(nn.Linear(2, 2)), "spectral": nn.utils.spectral_norm(nn.Linear(2, 2)),
        "pruned": torch.nn.utils.prune.random_unstructured(nn.Linear(2, 2), "weight", 0.5),
    })  # fmt: skip
    w = tnp.weights(model)
    parts = {"normed": "weight_g, weight_v", "spectral": "weight_orig, weight_u, weight_v",
             "pruned": "weight_orig, weight_mask"}  # fmt: skip
    for name, told in parts.items():
        entry = w[f"{name}.weight"]
        assert (entry.kind, entry.note) == ("tensor", f"not registered, computed from {told} at each forward")
        assert entry.tensor is model[name].weight
    assert w.totals.parameters == sum(p.numel() for p in model.parameters())


def test_a_page_finds_each_again_and_holds_none(tmp_path):
    """By expressions: what a page shows keeps no module alive."""
    moved = accelerate.cpu_offload(Net())
    namespace = {"moved": moved, "packed": quantized(), "computed": parametrized()}
    shell = types.SimpleNamespace(user_ns=namespace)
    for name in list(namespace):
        w = tnp.weights(namespace[name], expression=name)
        rows, _ = released_from(w, shell.user_ns, "")
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


def test_what_a_call_gives_is_found_again_while_its_memory_lives():
    """No expression that calls is run again, and nothing is kept; what is tied or related stays so."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 3))
    model[1].weight = nn.Parameter(model[0].weight.data.t())
    shell = types.SimpleNamespace(user_ns={"model": model})
    w = tnp.weights(model.state_dict(), expression="model.state_dict()")
    rows, _ = released_from(w, shell.user_ns, "")
    expected = {name: entry.to_numpy().copy() for name, entry in w.items()}
    related = {name: entry.related for name, entry in w.items()}
    w.close()
    for one in rows:
        found = reached(one)
        assert np.array_equal(found.to_numpy(), expected[one.name])
        assert found.related == related[one.name]
        assert found.requires_grad is bool(one.requires_grad)
    with torch.no_grad():
        model[0].bias.fill_(7)
    assert (reached(rows[1]).to_numpy() == 7).all()
    del model, found, shell.user_ns["model"]
    gc.collect()
    for one in rows:
        with pytest.raises(tnp.NoDataError, match=r"model.state_dict\(\)\['.*'\] is kept by nobody; bind it to a name"):
            reached(one)


def test_released_rows_keep_nothing_alive():
    """Neither tensors and arrays, nor the module that would make a weight."""
    held = [nn.Linear(3, 4), quantized(), parametrized()]
    namespace = {"held": held[0], "packed": held[1], "computed": held[2], "arrays": {"a": np.ones(5)}}
    references = [weakref.ref(one) for one in (*held, namespace["arrays"]["a"])]
    rows = []
    for name, value in namespace.items():
        w = tnp.weights(value, expression=name)
        rows += released_from(w, namespace, "")[0]
        w.close()
    named = len(rows)
    namespace.clear()
    del held, value, w
    gc.collect()
    assert [reference() for reference in references] == [None] * 4
    for one in rows:
        assert one.tensor is None
        with pytest.raises(tnp.NoDataError, match="reaches no weight any more"):
            one.to_numpy()
    assert len(rows) == named > 6


class Counting(nn.Module):
    """A parametrization with state of every kind, which each forward changes."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)
        self.of_numpy, self.of_python = np.random.default_rng(0), random.Random(0)
        self.array, self.queue, self.spaces = np.zeros(3), deque([1]), types.SimpleNamespace(n=0)
        self.tables = defaultdict(list)
        self.register_buffer("calls", torch.zeros(()))
        self.impl = self._impl
        self.partial = functools.partial(self._impl)

    def _impl(self, weight: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.array += 1
        self.queue.append(2)
        self.spaces.n += 1
        self.tables["a"].append(1)
        torch.set_default_dtype(torch.float64)
        return weight + torch.randn(weight.shape, generator=self.generator, dtype=weight.dtype) + self.of_numpy.random()

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        self.of_python.random()
        return self.impl(self.partial(weight))

    def state(self) -> list[object]:
        """Return all that a forward changes."""
        generators = (
            self.generator.get_state().tolist(),
            str(self.of_numpy.bit_generator.state),
            self.of_python.getstate(),
        )
        others = self.array.tolist(), list(self.queue), self.spaces.n, dict(self.tables), self.calls.item()
        return [*generators, *others, torch.get_default_dtype()]


def test_state_of_any_kind_is_left_alone():
    """Generators, arrays, queues, what methods are bound to, and the default dtype."""
    layer = nn.Linear(4, 4)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Counting())
    torch.set_default_dtype(torch.float32)
    own = layer.parametrizations.weight[0]
    before = copy.deepcopy(own.state())
    entry = tnp.weights(layer)["weight"]
    first, second = entry.to_numpy(), entry.to_numpy()
    assert own.state() == before
    # The same state gives the same numbers.
    assert np.array_equal(first, second)


class Dropping(nn.Module):
    """A parametrization that draws random numbers."""

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(weight, 0.5, training=True)


@pytest.mark.slow
@in_fork
def test_random_numbers_of_another_thread_do_not_come_twice():
    """What would be set back is not run while another thread may draw; torch's own parametrizations draw nothing."""
    layer = nn.Linear(30, 30)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Dropping())
    entry = tnp.weights(layer)["weight"]
    before = torch.get_rng_state()
    entry.stats()
    assert torch.equal(before, torch.get_rng_state())
    begun, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (begun.set(), end.wait()))
    thread.start()
    begun.wait()
    try:
        with pytest.raises(tnp.NoDataError, match="may draw random numbers, and another thread runs; ask again"):
            entry.stats()
        tnp.weights(parametrizations.weight_norm(nn.Linear(3, 3)))["weight"].stats()
    finally:
        end.set()
        thread.join()


def test_what_cannot_be_copied_is_not_run_in_place():
    """In one sentence: what it would change is the user's own."""
    layer = nn.Linear(4, 4)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Counting())
    torch.set_default_dtype(torch.float32)
    layer.parametrizations.weight[0].lock = threading.Lock()
    calls = layer.parametrizations.weight[0].calls.item()
    with pytest.raises(tnp.NoDataError, match="a parametrization that cannot be copied"):
        tnp.weights(layer)["weight"].stats()
    assert layer.parametrizations.weight[0].calls.item() == calls


def test_a_variable_that_holds_the_explorer_gives_what_its_names_do_not():
    """As after `%weights -o w model`, and another model of that name."""
    model = nn.Linear(3, 4)
    w = tnp.weights(model, expression="model")
    shell = types.SimpleNamespace(user_ns={"model": model, "w": w})
    rows, _ = released_from(w, shell.user_ns, "w")
    shell.user_ns["model"] = None
    assert reached(rows[0]).tensor is w["weight"].tensor
    shell.user_ns["w"] = tnp.weights(nn.Linear(3, 4), expression="other")
    with pytest.raises(tnp.NoDataError):
        reached(rows[0])


def test_what_has_no_values_says_so_when_it_is_opened():
    """A state before the first step, and a weight that is None by now."""
    model = nn.Linear(3, 4)
    opt = torch.optim.AdamW(model.parameters())
    shell = types.SimpleNamespace(user_ns={"model": model, "opt": opt})
    w = tnp.weights(opt, expression="opt")
    rows, _ = released_from(w, shell.user_ns, "")
    assert {reached(one).problem for one in rows} == {"no state yet"}
    w = tnp.weights(model, expression="model")
    rows, _ = released_from(w, shell.user_ns, "")
    model.bias = None
    with pytest.raises(tnp.NoDataError, match=r"model.bias is None by now; show them again"):
        reached(rows[1])


def test_an_explorer_is_its_own(tmp_path):
    """Also a part of one, so that it can be shown as a tree."""
    w = tnp.weights(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 3)))
    assert tnp.weights(w) is w
    assert list(tnp.weights(w["0"])) == ["0.weight", "0.bias"]


@pytest.mark.parametrize("error", [SystemExit(3), ValueError("no")], ids=["SystemExit", "ValueError"])
def test_a_parametrization_that_raises_is_a_sentence(error):
    """Whatever it raises: nothing ends the process."""

    class Raising(nn.Module):
        is_on = False

        def forward(self, weight):
            if self.is_on:
                raise error
            return weight

    layer = nn.Linear(3, 3)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Raising())
    Raising.is_on = True
    with pytest.raises(tnp.NoDataError, match="'weight' cannot be made"):
        tnp.weights(layer)["weight"].stats()


def test_an_offloaded_model_of_paths_is_listed(tmp_path):
    """A folder of another type than text."""
    model = accelerate.disk_offload(nn.Linear(2, 2), Path(tmp_path))
    assert tnp.weights(model)["weight"].location == str(tmp_path)


def test_an_object_that_stands_for_a_tensor_counts_its_memory_once():
    """In a list, where it shows memory of its own twice, and where it makes a tensor anew for each that asks."""

    class Own:
        def __init__(self) -> None:
            self.inside = torch.zeros(3)

        def __tensornp__(self) -> torch.Tensor:
            return self.inside

    class Anew:
        def __tensornp__(self) -> torch.Tensor:
            return torch.zeros(5)

    own = Own()
    for held, elements in (([own, own], 3), ([Anew()], 5), ([own, Anew()], 8)):
        weights = tnp.weights(held)
        assert repr(weights) != ""
        assert (weights.totals.elements_stored, weights.totals.nbytes) == (elements, 4 * elements)


def test_arrays_of_a_live_tree_are_found_again(tmp_path):
    """A map of a file, another byte order, and what has another shape by now."""
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(3, 4))
    shell = types.SimpleNamespace(user_ns={})
    held = {"map": np.load(tmp_path / "x.npy", mmap_mode="r"), "swapped": np.arange(3, dtype=">i4")}
    shell.user_ns["held"] = held
    w = tnp.weights(held, expression="held", namespace=shell.user_ns)
    rows, _ = released_from(w, shell.user_ns, "")
    for fact in rows:
        assert np.array_equal(reached(fact).to_numpy(), held[fact.name])
        assert reached(fact).kind == "array"
    held["swapped"] = np.arange(4, dtype=">i4")
    with pytest.raises(tnp.NoDataError, match=r"is >i4 of shape \(4,\) by now; show them again"):
        reached(rows[1])


@pytest.mark.parametrize(("biases", "said"), [(1, "a packed bias is there"), (2, "2 packed biases are there")])
def test_one_bias_is_one(biases, said):
    """In words that agree with the number."""
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(biases)))
    packed = torch.ao.quantization.quantize_dynamic(model, dtype=torch.qint8)
    assert tnp.weights(packed).problems == [f"only reading tells whether {said}, and none is counted"]

"""A weight of an explorer is taken wherever a tensor is, or refused with what is taken instead."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from child import in_fork
from memory_limit import limit_memory, on_linux
from older import HAS_COMPLEX32
from safetensors.torch import save_file
from torch.nn.utils import parametrizations

import tensornp as tnp
from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.shown.window import window_of
from tensornp.core.values.shown.window_values import read_window, subject_of
from tensornp.core.values.stats import fast
from tensornp.models.entries.summary import preview_of


def own() -> torch.Tensor:
    t = torch.arange(24.0).reshape(4, 6)
    t[1, 2], t[3, 0] = torch.nan, -5
    return t


def in_file(folder):
    save_file({"w": own()}, folder / "w.safetensors")
    return tnp.weights(folder / "w.safetensors")["w"]


def computed(folder):
    layer = torch.nn.Linear(6, 4)
    layer.weight = torch.nn.Parameter(own().nan_to_num(7))
    return tnp.weights(parametrizations.weight_norm(layer))["weight"]


def frozen(array):
    array.flags.writeable = False
    return array


ARRAYS = {
    "array": lambda array: array,
    "read-only array": frozen,
    "array of the other byte order": lambda array: array.astype(array.dtype.newbyteorder()),
    "array of the other byte order, in columns": lambda array: np.asfortranarray(
        array.astype(array.dtype.newbyteorder())
    ),
    "reversed array": lambda array: array[::-1].copy()[::-1],
    "array over a tensor": lambda array: tnp.to_numpy(tnp.to_tensor(array)),
}
ENTRIES = {
    "file": in_file,
    "module": lambda folder: tnp.weights({"w": own()})["w"],
    **{name: lambda folder, make=make: tnp.weights({"w": make(own().numpy())})["w"] for name, make in ARRAYS.items()},
    "computed": computed,
}


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_weight_is_taken_as_its_array_is(kind, tmp_path):
    """By each function with a method of that name, and by those that draw it."""
    entry = ENTRIES[kind](tmp_path)
    array = entry.to_numpy()
    assert np.array_equal(tnp.to_numpy(entry), array, equal_nan=True)
    assert tnp.to_numpy(entry, dtype="float64").dtype == np.float64
    with pytest.raises(tnp.TooLargeError):
        tnp.to_numpy(entry, copy=True, dtype="float64", max_nbytes=100)
    assert tnp.stats(entry).min == tnp.stats(array).min
    assert np.array_equal(tnp.stats(entry, axis=0).max, tnp.stats(array, axis=0).max, equal_nan=True)
    for what in ("nan", "min"):
        assert tnp.locate(entry, what) == tnp.locate(array, what)
    assert tnp.image(entry).png == tnp.image(array).png
    assert len(tnp.plot(entry).axes) >= 2
    plain = own().nan_to_num(7) if kind == "computed" else own()
    assert preview_of(entry, {}).text == repr(plain.numpy())
    window = window_of((4, 6), axes=None, corner=(1, 2), num_rows=3, num_columns=2)
    assert read_window(subject_of(entry._values()), window) == read_window(subject_of(plain), window)
    assert tnp.compare(entry, plain).same_bits


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_an_array_of_any_dtype_is_equal_to_itself(make):
    """However it lies, and whether torch could share it."""
    for name in KNOWN:
        if name.startswith("float4") or not hasattr(torch, name) or (name == "complex32" and not HAS_COMPLEX32):
            continue
        array = make(tnp.to_numpy(torch.arange(6).to(getattr(torch, name)).view(2, 3), copy=True, dtype=name))
        entry = tnp.weights({"w": array})["w"]
        assert tnp.compare(entry, entry).equal, name
        assert tnp.compare({"w": array}, {"w": array}).equal, name


@pytest.mark.slow
@on_linux
@in_fork
def test_an_array_of_a_large_file_is_looked_at_in_little_memory(tmp_path):
    """One that is read-only, which torch cannot share, is copied nowhere as a whole."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**30)
    array = np.memmap(tmp_path / "large", np.float32, "r")
    entry = tnp.weights({"w": array})["w"]
    # What numba takes is not told of the array.
    fast.load()
    limit_memory(2**28)
    assert "array([0., 0., 0., ..., 0., 0., 0.]" in tnp.card(entry).text
    assert tnp.stats(entry).zeros == 2**28
    assert tnp.locate(entry, "min").count == 2**28
    assert tnp.compare({"w": array}, {"w": array}).same_bits


@pytest.mark.parametrize("function", [tnp.inspect, tnp.plan, tnp.TensorWidget, tnp.aliases, tnp.to_tensor, tnp.to_jax])
def test_what_takes_no_weight_says_what_to_pass(function, tmp_path):
    """In one sentence, without the name of a class that no user knows; what it says to pass is taken."""
    entry = in_file(tmp_path)
    with pytest.raises(tnp.NotATensorError, match=r"not a weight of an explorer; pass (.*)") as refused:
        function(entry)
    said = str(refused.value)
    assert "FileEntry" not in said
    cure = re.search(r"tnp\.to_tensor\(entry\.to_numpy\(\)\)|entry\.to_numpy\(\)", said)
    if function is not tnp.to_jax:
        function(eval(cure.group(), {"tnp": tnp, "entry": entry}))


TREES = {
    "explorer": lambda w: w,
    "subtree": lambda w: w["0"],
    "dict": lambda w: {"a": w},
    "weights": lambda w: [w["0.bias"]],
}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("function", [tnp.to_numpy, tnp.to_tensor])
def test_weights_in_a_container_are_refused_with_what_converts_them(function, tree):
    """And not given back as they were; the cure is taken by both."""
    w = tnp.weights(torch.nn.Sequential(torch.nn.Linear(3, 2)))
    for copy in (None, True):
        with pytest.raises(tnp.NotATensorError, match=r"0\.(weight|bias)|\[0\]") as refused:
            function(TREES[tree](w), copy=copy)
    cure = re.search(r"\{.*\}", str(refused.value)).group()
    arrays = eval(cure, {"w": w})
    assert arrays.keys() == w.keys()
    assert isinstance(tnp.to_tensor(arrays)["0.bias"], torch.Tensor)


@pytest.mark.parametrize("function", [tnp.stats, tnp.locate, tnp.image, tnp.plot, tnp.to_numpy, tnp.card])
def test_a_model_is_refused_with_what_takes_its_weights(function):
    """A module, where it has no table of its own, and an optimizer, which has none; each cure gives what it says."""
    module = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(module.parameters())
    for model in (module, optimizer) if function is not tnp.card else (optimizer,):
        cures = r"; (take one of its weights|pass its state_dict\(\)$|pass tnp\.weights\(\.\.\.\) of it$)"
        with pytest.raises(tnp.NotATensorError, match=cures):
            function(model)
    assert tnp.to_numpy(module.state_dict())["bias"].shape == (2,)
    assert "weight" in tnp.weights(module).scan(progress=False)
    assert "SGD" in tnp.card(tnp.weights(optimizer)).text


def test_a_masked_array_is_no_weight():
    """Its hidden elements would be read as values; the others are listed beside it."""
    explorer = tnp.weights({"w": np.ones(2), "m": np.ma.array([1, 999], mask=[0, 1])})
    assert list(explorer.scan()) == ["w"]
    assert "masked" in explorer.scan().failed["m"]
    assert "masked" in tnp.card(explorer).text
    with pytest.raises(tnp.NoDataError, match=r"masked.*filled"):
        explorer["m"].to_numpy()
    assert not tnp.compare(explorer, explorer).equal


def test_a_nested_weight_says_that_a_part_of_it_is_shown():
    """The others may hold anything."""
    nested = torch.nested.nested_tensor([torch.zeros(2, 3), torch.full((1, 3), torch.nan)])
    card = tnp.card(tnp.weights({"n": nested})["n"])
    assert card.text.endswith("(part 0 of 2)")
    assert "part 0 of 2" in card.html


class Unsliced(torch.Tensor):
    """Takes no index, and says so by an assertion of its own, as classes of quantization libraries do."""

    @staticmethod
    def __new__(cls, codes):
        wrapper = torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=torch.float32)
        wrapper.codes = codes
        return wrapper

    def dequantize(self):
        return self.codes.float()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(args[0].codes)
        raise AssertionError("slices are incompatible with blocks")


def test_what_a_class_raises_of_an_index_ends_in_a_sentence():
    """Whatever it is."""
    entry = tnp.weights({"w": Unsliced(torch.ones(4, 4, dtype=torch.int8))})["w"]
    with pytest.raises(tnp.BadRequestError, match=r"torch does not take this of 'w'; take all of it, .*incompatible"):
        entry.to_numpy((slice(0, 2), slice(1, 3)))
    assert entry.to_numpy().shape == (4, 4)

"""A weight of an explorer is taken wherever a tensor is, or refused with what is taken instead."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn.utils import parametrizations

import tensornp as tnp
from tensornp.core.values.shown.window import read_window, subject_of, window_of
from tensornp.models.module_view import preview_of


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

"""What an attack on `weights` has found: of tensors in memory, of paths, and of what is asked of an explorer."""

from __future__ import annotations

import enum

import numpy as np
import pytest
import torch
from torch import nn

import tensornp as tnp


class _Color(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize(
    "tree",
    [
        {(0, 1): torch.ones(1), (0, 2): torch.ones(2)},
        {np.str_("a"): torch.ones(1), np.str_("b"): torch.ones(2)},
        {np.int64(1): torch.ones(1), np.int64(2): torch.ones(2)},
        {_Color.RED: torch.ones(1), _Color.BLUE: torch.ones(2)},
        {"a": {torch.ones(1), torch.ones(2)}},
        {b"x" * 200 + b"1": torch.ones(1), b"x" * 200 + b"2": torch.ones(2)},
        {"x" * 200 + "1": {"a": torch.ones(1)}, "x" * 200 + "1.a": torch.ones(2)},
        {"a": {"b": torch.ones(1)}, "a.b": torch.ones(2), "['a']['b']": torch.ones(3)},
    ],
    ids=["tuples", "numpy.str_", "numpy.int64", "enum", "set", "bytes", "long", "brackets"],
)
def test_no_tensor_of_a_dictionary_vanishes(tree):
    """Though other keys give its name, or none that can be told from the others'."""
    explorer = tnp.weights(tree)
    sizes = sorted(len(entry.to_numpy()) for entry in explorer.values())
    assert sizes == list(range(1, len(sizes) + 1))
    assert len(sizes) == sum(len(one) if type(one) in (dict, set) else 1 for one in tree.values())


def test_keys_are_written_as_they_are_reached():
    """A tuple of numbers, a text of any length, and a text of another class."""
    tree = {(0, 1): torch.ones(1), "x" * 300: torch.ones(2), np.str_("a"): torch.ones(3)}
    explorer = tnp.weights(tree)
    assert list(explorer) == ["(0, 1)", "x" * 300, "a"]
    for entry in explorer.values():
        assert eval(entry.code, {"state_dict": tree}) is entry.tensor


def test_a_child_by_the_name_of_a_compiled_one_is_shown():
    """It is hidden only where `torch.compile` has put it."""
    model = nn.Linear(2, 2)
    model._orig_mod = nn.Linear(2, 2)
    assert list(tnp.weights(model)) == ["weight", "bias", "_orig_mod.weight", "_orig_mod.bias"]
    parallel = nn.DataParallel(nn.Linear(2, 2))
    parallel.register_parameter("weight", nn.Parameter(torch.ones(3)))
    explorer = tnp.weights(parallel)
    assert len(explorer) == 3
    assert {entry.shape for entry in explorer.values()} == {(3,), (2, 2), (2,)}


def test_an_attribute_with_dots_hides_no_weight():
    """A name that `setattr` takes may be that of a child's weight."""
    model = nn.Sequential(nn.Linear(1, 1))
    setattr(model, "0.weight", torch.ones(5))
    assert len(tnp.weights(model)) == 3


def test_modules_that_are_shared_at_each_level_end():
    """Of 2**40 names some are listed, each weight among them, and that there are more is told."""
    model: nn.Module = nn.Linear(2, 2)
    for _ in range(40):
        pair = nn.Module()
        pair.a = pair.b = model
        pair.own = nn.Parameter(torch.ones(1))
        model = pair
    explorer = tnp.weights(model)
    assert len({id(entry.tensor) for entry in explorer.values()}) == 42
    assert len(explorer) < 5000
    assert "places of shared modules are not listed" in explorer.problems[0]
    shared = nn.Linear(2, 2)
    ordinary = tnp.weights(nn.Sequential(*[shared] * 200))
    assert len(ordinary) == 400
    assert ordinary.problems == []


def test_a_module_of_any_depth_is_listed():
    """Without recursion."""
    model: nn.Module = nn.Linear(1, 1)
    for _ in range(3000):
        above = nn.Module()
        above.x = model
        model = above
    assert len(tnp.weights(model)) == 2
    # Python itself would take a module of this depth apart by recursion.
    while hasattr(model, "x"):
        model = model._modules.pop("x")

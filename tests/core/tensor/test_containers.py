"""Containers convert as a whole: structure and types stay, whatever they do when made or filled."""

from __future__ import annotations

import collections
import dataclasses
import os
import re
import types
from itertools import islice

import numpy as np
import pytest
import tensordict
import torch

import tensornp as tnp
from tensornp.core.summary.container import summarize_container
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.containers import leaves
from tensornp.core.tensor.paths import expression_of


@dataclasses.dataclass
class Batch:
    """A dataclass that checks what it is given, as people's do."""

    tokens: torch.Tensor
    name: str
    parts: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        assert isinstance(self.tokens, torch.Tensor)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    weight: torch.Tensor


def test_a_dataclass_keeps_its_type_and_runs_nothing_of_its_own():
    """Its checks, which want tensors, are not asked."""
    batch = Batch(torch.ones(2, dtype=torch.bfloat16), "b", [torch.zeros(1)])
    out = tnp.to_numpy(batch)
    assert type(out) is Batch
    assert (out.tokens.dtype, out.name) == (np.float32, "b")
    assert isinstance(out.parts[0], np.ndarray)
    assert isinstance(batch.tokens, torch.Tensor), "the original stays"


def test_a_tensordict_becomes_a_dict():
    """Nested ones become nested dicts; the arrays share its memory."""
    td = tensordict.TensorDict({"a": torch.zeros(3), "n": {"b": torch.ones(3, 1)}}, batch_size=[3])
    out = tnp.to_numpy(td)
    td["a"][0] = 5
    assert type(out) is dict
    assert out["a"].tolist() == [5, 0, 0]
    assert out["n"]["b"].shape == (3, 1)


def test_a_mapping_that_is_no_dict_becomes_one():
    """UserDict, as tokenizers return, and read-only proxies."""
    for mapping in (collections.UserDict(x=torch.ones(2)), types.MappingProxyType({"x": torch.ones(2)})):
        assert tnp.to_numpy(mapping)["x"].tolist() == [1, 1]


T = torch.ones(2)
CONTAINERS = {
    "dict": {"a": T, "b": [T]},
    "list": [T, {"a": T}],
    "tuple": (T, (T,)),
    "return type": torch.max(torch.rand(2, 2), 0),
    "deque": collections.deque([T, [T]], maxlen=5),
    "dataclass": Batch(T, "b", [T]),
    "frozen dataclass with slots": Frozen(T),
    "UserDict": collections.UserDict(a=T, b={"c": T}),
    "OrderedDict": collections.OrderedDict(a=T),
    "TensorDict": tensordict.TensorDict({"a": T, "n": {"b": torch.ones(2, 1)}}, batch_size=[2]),
    "nested": {"u": collections.UserDict(a=T), "d": collections.deque([Batch(T, "b")])},
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_card_and_conversion_agree_on_what_is_in_a_container(name):
    """What a table names is what becomes an array, under the same name."""
    container = CONTAINERS[name]
    tensors = [expression_of(path) for path, leaf in leaves(container) if isinstance(leaf, torch.Tensor)]
    arrays = [expression_of(path) for path, leaf in leaves(tnp.to_numpy(container)) if isinstance(leaf, np.ndarray)]
    assert tensors
    assert arrays == tensors
    table = summarize_container(container, DisplayOptions())
    names = [row.name for row in table.rows if row.tensor is not None]
    assert names == [re.sub(r"^\['(\w+)'\]", r"\1", path) for path in tensors]


class Loading(collections.abc.Mapping):
    """A mapping that loads each item when it is asked for, and keeps what it has loaded."""

    def __init__(self, names):
        self.names, self.loaded = names, {}

    def __len__(self):
        return len(self.names)

    def __iter__(self):
        return iter(self.names)

    def __getitem__(self, name):
        return self.loaded.setdefault(name, torch.ones(2))


def test_a_mapping_that_loads_its_values_is_asked_for_none():
    """A look at it would read a whole file; conversion does, since it was asked to."""
    mapping = Loading(["a", "b"])
    assert mapping["a"] is not None
    assert [leaf for _, leaf in leaves({"m": mapping})] == [mapping]
    assert set(mapping.loaded) == {"a"}
    assert set(tnp.to_numpy(mapping)) == {"a", "b"}


@pytest.mark.slow
def test_a_list_of_empty_lists_is_left_to_ipython_at_once():
    """An empty container counts as a leaf, or the search for a tensor would see none, and never end."""
    assert sum(1 for _ in islice(leaves([[] for _ in range(10**6)]), 1000)) == 1000


@dataclasses.dataclass
class Configuration:
    """A dataclass without a tensor, which cannot be copied."""

    rate: float = 0.1

    def __reduce_ex__(self, protocol):
        raise TypeError("cannot be copied")


def test_what_holds_no_tensor_stays_the_very_object():
    """Configurations beside tensors are neither copied nor made into something else."""
    configuration, user = Configuration(), collections.UserDict(a=1)
    out = tnp.to_numpy({"t": T, "c": configuration, "u": user, "e": os.environ})
    assert (out["c"], out["u"], out["e"]) == (configuration, user, os.environ)
    assert out["c"] is configuration
    assert out["u"] is user


def doubled(tree, times):
    for _ in range(times):
        tree = [tree, tree]
    return tree


def test_a_container_in_several_places_is_converted_once():
    """And is one again, as deep as it may lie."""
    array = tnp.to_numpy(doubled([torch.ones(1)], 60))
    for _ in range(60):
        assert array[0] is array[1]
        array = array[0]
    assert isinstance(array[0], np.ndarray)
    back = tnp.to_tensor(doubled({"a": np.ones(1)}, 60))
    assert back[0] is back[1]

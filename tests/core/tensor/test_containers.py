"""Containers convert as a whole: structure and types stay, whatever they do when made or filled."""

from __future__ import annotations

import collections
import dataclasses
import enum
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
from tensornp.core.tensor.containers import leaves, walk
from tensornp.render.collections.container import container_document


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


def test_a_frozen_dataclass_with_slots_converts():
    """Neither has a dictionary, nor lets itself be set."""
    assert tnp.to_numpy(Frozen(torch.ones(2))).weight.tolist() == [1, 1]


def test_a_packed_sequence_converts_field_by_field():
    """Data and batch sizes become arrays; None stays."""
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.zeros(1, 2)])
    out = tnp.to_numpy(packed)
    assert out.data.shape == (4, 2)
    assert out.batch_sizes.tolist() == [2, 1, 1]
    assert out.sorted_indices is None


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


def test_a_dict_of_a_class_of_its_own_keeps_it():
    """A default factory survives, as do the order and the attributes."""
    original = collections.defaultdict(list, x=torch.ones(2))
    out = tnp.to_numpy(original)
    assert (type(out), out.default_factory) == (collections.defaultdict, list)
    assert isinstance(original["x"], torch.Tensor)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_storage_is_an_array_of_what_it_holds(dtype):
    """Untyped: its bytes, shared; typed: its elements."""
    t = torch.ones(3, dtype=dtype)
    raw = tnp.to_numpy(t.untyped_storage())
    assert (raw.dtype, raw.nbytes) == (np.uint8, t.untyped_storage().nbytes())
    t[0] = 0
    assert raw[: t.itemsize].tolist() == [0] * t.itemsize
    assert tnp.to_numpy(torch.TypedStorage(3, dtype=dtype)).shape == (3,)
    assert tnp.plan(t.untyped_storage()).shares_memory


def test_a_freed_storage_is_an_empty_array():
    """It holds no byte, and says so."""
    t = torch.ones(3)
    t.untyped_storage().resize_(0)
    assert tnp.to_numpy([t.untyped_storage()])[0].shape == (0,)


def test_a_nested_tensor_in_a_container_becomes_a_list_there():
    """One leaf, several arrays."""
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    assert [len(part) for part in tnp.to_numpy({"n": nested})["n"]] == [2, 3]


@pytest.mark.parametrize("depth", [50, 5000])
def test_depth_ends_in_a_sentence_and_never_in_a_crash(depth):
    """A hundred levels convert; what goes on for thousands is refused."""
    tree = [torch.ones(1)]
    for _ in range(depth):
        tree = [tree]
    if depth < 100:
        tree = tnp.to_numpy(tree)
        for _ in range(depth):
            (tree,) = tree
        assert tree[0].tolist() == [1]
    else:
        with pytest.raises(tnp.BadRequestError):
            tnp.to_numpy(tree)


class Point(tuple):
    """A tuple with a constructor of its own."""

    def __new__(cls, x, y):
        return tuple.__new__(cls, (x, y))


class Named(list):
    """A list that must be given a name."""

    def __init__(self, name, items):
        super().__init__(items)
        self.name = name


def test_a_sequence_with_a_constructor_of_its_own_keeps_type_and_attributes():
    """Past the constructor, which wants other arguments."""
    t = torch.ones(2)
    out = tnp.to_numpy(Point(t, t))
    assert (type(out), len(out)) == (Point, 2)
    out = tnp.to_numpy(Named("batch", [t]))
    assert (type(out), out.name, out[0].tolist()) == (Named, "batch", [1, 1])


class OnlyTensors(dict):
    """A dict that takes tensors only."""

    def __setitem__(self, key, value):
        assert isinstance(value, torch.Tensor)
        super().__setitem__(key, value)


def test_a_dict_that_takes_no_arrays_becomes_a_plain_one():
    """Its arrays are still given."""
    d = OnlyTensors()
    d["a"] = torch.ones(2)
    out = tnp.to_numpy(d)
    assert type(out) is dict
    assert out["a"].tolist() == [1, 1]


class Broken(dict):
    """A dict of which nothing can be asked."""

    def __len__(self):
        raise RuntimeError("no length")

    __iter__ = items = keys = values = __getitem__ = __len__


@pytest.mark.parametrize(
    "container",
    [
        {"a": torch.ones(2), "n": 10**5000},
        {10**5000: torch.ones(2)},
        Broken(a=torch.ones(2)),
        {"a": torch.ones(2), "s": "x" * 10**6},
    ],
    ids=["digits", "key", "broken", "text"],
)
def test_a_container_that_cannot_be_walked_or_printed_still_shows(container):
    """Promise 2: what can be reached is shown."""
    text = container_document(summarize_container(container, DisplayOptions())).text()
    assert "1., 1." in text
    assert len(text) < 2000


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
    tensors = [path for path, leaf in walk(container) if isinstance(leaf, torch.Tensor)]
    arrays = [path for path, leaf in walk(tnp.to_numpy(container)) if isinstance(leaf, np.ndarray)]
    assert tensors
    assert arrays == tensors
    table = summarize_container(container, DisplayOptions())
    names = [row.name for row in table.rows if row.tensor is not None]
    assert names == [re.sub(r"^\['(\w+)'\]", r"\1", path) for path in tensors]


def test_a_deque_keeps_its_length():
    """A replay buffer is one."""
    out = tnp.to_numpy(collections.deque([torch.ones(2)], maxlen=3))
    assert (type(out), out.maxlen, out[0].tolist()) == (collections.deque, 3, [1, 1])


def test_a_set_of_tensors_is_refused_with_the_cure_and_other_sets_stay():
    """Arrays have no hash; nothing is left unconverted in silence."""
    for container in ({T}, frozenset([T]), {"a": [{T}]}):
        with pytest.raises(tnp.BadRequestError, match="pass a list of its members"):
            tnp.to_numpy(container)
    with pytest.raises(tnp.BadRequestError, match=r"^\['a'\]\[0\]: a set"):
        tnp.to_numpy({"a": [{T}]})
    names = frozenset("ab")
    assert tnp.to_numpy({"t": T, "names": names})["names"] is names
    (scalar,) = tnp.to_tensor({np.float32(2)})
    assert isinstance(scalar, torch.Tensor)


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
    assert [leaf for _, leaf in walk({"m": mapping})] == [mapping]
    assert set(mapping.loaded) == {"a"}
    assert set(tnp.to_numpy(mapping)) == {"a", "b"}


def test_a_list_of_empty_lists_is_left_to_ipython_at_once():
    """An empty container counts as a leaf, or the search for a tensor would see none, and never end."""
    assert sum(1 for _ in islice(walk([[] for _ in range(10**6)]), 1000)) == 1000


class Same(list):
    """A list that gives itself for a copy."""

    __copy__ = lambda self: self  # noqa: E731


class SameDict(dict):
    """A dict that gives itself for a copy."""

    __copy__ = lambda self: self  # noqa: E731


class SameDeque(collections.deque):
    """A deque that gives itself for a copy."""

    __copy__ = lambda self: self  # noqa: E731


@pytest.mark.parametrize("container", [Same([T]), SameDict(a=T), SameDeque([T])], ids=["list", "dict", "deque"])
def test_a_container_that_gives_itself_for_a_copy_is_not_written(container):
    """It becomes a plain one."""
    (array,) = tnp.to_numpy(container).values() if isinstance(container, dict) else tnp.to_numpy(container)
    assert isinstance(array, np.ndarray)
    (kept,) = container.values() if isinstance(container, dict) else container
    assert kept is T


@dataclasses.dataclass
class Weighted:
    weight: torch.Tensor


class Preset(Weighted, enum.Enum):
    """An enumeration of dataclasses: Python gives the member itself for a copy."""

    A = torch.ones(2)


@dataclasses.dataclass
class Computed:
    """A dataclass of which one field is a property that writes what all copies share."""

    weight: torch.Tensor


Computed.weight = property(lambda self: self.kept["w"], lambda self, w: vars(self).setdefault("kept", {}).update(w=w))


@pytest.mark.parametrize("make", [lambda: Preset.A, lambda: Computed(torch.ones(2))], ids=["enum", "property"])
def test_a_dataclass_that_cannot_be_copied_is_refused_and_not_written(make):
    """With the cure, and never in place."""
    obj = make()
    with pytest.raises(tnp.BadRequestError, match="convert"):
        tnp.to_numpy({"a": obj})
    assert isinstance(obj.weight, torch.Tensor)


@dataclasses.dataclass
class Configuration:
    """A dataclass without a tensor, which cannot be copied."""

    rate: float = 0.1

    def __reduce_ex__(self, protocol):
        raise TypeError("cannot be copied")


def test_what_tells_of_a_tensor_is_no_container():
    """Its keys and counts are its own affair, beside a tensor too."""
    t = torch.arange(3.0)
    told = (tnp.stats(t), tnp.inspect(t), tnp.plan(t), tnp.compare(t, t))
    text = str(tnp.card([t, *told]))
    assert "list of 5 · 1 tensor · 12 bytes" in text and "(TensorStats)" in text and "distribution" not in text
    converted = tnp.to_numpy([t, *told])
    assert all(a is b for a, b in zip(converted[1:], told, strict=True))


def test_what_holds_no_tensor_stays_the_very_object():
    """Configurations beside tensors are neither copied nor made into something else."""
    configuration, user = Configuration(), collections.UserDict(a=1)
    out = tnp.to_numpy({"t": T, "c": configuration, "u": user, "e": os.environ})
    assert (out["c"], out["u"], out["e"]) == (configuration, user, os.environ)
    assert out["c"] is configuration
    assert out["u"] is user


class Making(dict):
    """A dict that makes tensors of what it is given."""

    def __setitem__(self, key, value):
        super().__setitem__(key, torch.as_tensor(value))


def test_a_dict_that_makes_tensors_again_becomes_a_plain_one():
    """No tensor is left where an array was asked for."""
    making = Making()
    making["a"] = torch.ones(2)
    out = tnp.to_numpy(making)
    assert (type(out), type(out["a"])) == (dict, np.ndarray)


class Store(collections.abc.Mapping):
    """A mapping beside whose items lie others of the same names."""

    def __init__(self, **items):
        self.grads, self.items_ = {name: item * 0 for name, item in items.items()}, items

    def __len__(self):
        return len(self.items_)

    def __iter__(self):
        return iter(self.items_)

    def __getitem__(self, name):
        return self.items_[name]


class Scaled(collections.UserDict):
    """A UserDict that makes others of its values."""

    def __getitem__(self, key):
        return self.data[key] * 10


@pytest.mark.parametrize("mapping", [Store(w=T), Scaled(w=T)], ids=["store", "scaled"])
def test_of_a_mapping_with_items_of_its_own_no_others_are_shown(mapping):
    """It is one leaf; conversion gives what it gives."""
    assert [leaf for _, leaf in walk({"m": mapping})] == [mapping]
    assert tnp.to_numpy(mapping)["w"].tolist() == mapping["w"].tolist()


def test_a_look_computes_no_field_and_asks_no_dict_of_its_own_class():
    """Each of these would raise."""

    class Own(dict):
        def items(self):
            raise AssertionError

    Own.__iter__ = Own.keys = Own.values = Own.__getitem__ = Own.items
    obj = Computed(torch.ones(2))
    obj.kept.clear()
    assert [leaf for _, leaf in walk({"own": Own(a=T), "computed": obj})] == [T, obj]


def test_what_lies_too_deep_is_not_said_to_be_all():
    """The heading says "at least"."""
    tree = T
    for _ in range(200):
        tree = [tree, torch.ones(1)]
    assert not summarize_container(tree, DisplayOptions()).is_complete
    assert summarize_container([[T], []], DisplayOptions()).is_complete


class Odd:
    """Something that is like a dataclass, and none."""

    def __init__(self) -> None:
        self.a = torch.ones(1)


def test_odd_classes_are_told_in_a_sentence():
    """Fields that are none, a maker that is none, and a mapping that keeps itself: none ends in a raw error."""
    unlike = (type("Odd", (Odd,), {"__dataclass_fields__": fields}) for fields in ({"a": 3}, property(lambda _: {})))
    for one in unlike:
        with pytest.raises(tnp.NotATensorError, match="not 'Odd'"):
            tnp.to_numpy(one())
    made = tnp.to_numpy(type("Pair", (tuple,), {"_fields": ("x",), "_make": None})((torch.ones(1),)))
    assert isinstance(made[0], np.ndarray)
    looped = collections.UserDict()
    looped.data = looped
    with pytest.raises(tnp.TensornpError, match="a UserDict goes on without end where its items are; pass a dict"):
        tnp.to_numpy(looped)


def doubled(tree, times):
    for _ in range(times):
        tree = [tree, tree]
    return tree


def test_lists_that_share_their_parts_are_walked_for_a_while_only():
    """There are 2**60 ways to the tensor; what holds plain values alone has each of its names."""
    assert 1 < sum(1 for _ in leaves(doubled([torch.ones(1)], 60))) < 100_000
    betas = (0.5, 0.75)
    assert sum(1 for _ in leaves([{"betas": betas}] * 3 + [[betas] for _ in range(50_000)])) == 100_006


def test_a_container_in_several_places_is_converted_once():
    """And is one again, as deep as it may lie."""
    array = tnp.to_numpy(doubled([torch.ones(1)], 60))
    for _ in range(60):
        assert array[0] is array[1]
        array = array[0]
    assert isinstance(array[0], np.ndarray)
    back = tnp.to_tensor(doubled({"a": np.ones(1)}, 60))
    assert back[0] is back[1]


ASKED = []


class Asking(type):
    """Notes each question about its classes that only a metaclass answers."""

    def __hash__(cls):
        ASKED.append("hash")
        return type.__hash__(cls)

    def __eq__(cls, other):
        ASKED.append("equal")
        return cls is other

    def __getattribute__(cls, name):
        ASKED.append(name)
        return type.__getattribute__(cls, name)


class Watched(metaclass=Asking):
    """No container, which holds a tensor."""

    def __init__(self):
        self.w = torch.ones(1)


@dataclasses.dataclass
class WatchedFields(metaclass=Asking):
    """A container."""

    w: torch.Tensor


class WatchedText(str, metaclass=Asking):
    """Hashed as a text is."""


def test_no_metaclass_is_asked_about_what_lies_in_a_container():
    """Whatever looks at the container, and lists or compares what is in it."""
    tree = [Watched(), WatchedFields(torch.ones(1)), {WatchedText("w"): torch.ones(1)}, {"state": {}, "k": Watched()}]
    ASKED.clear()
    assert [name for name, _ in walk(tree)][:2] == ["[0]", "[1].w"]
    assert not ASKED
    tnp.weights(tree, namespace={})
    tnp.card(tree)
    assert not ASKED

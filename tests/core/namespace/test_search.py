"""A search through a hostile namespace: it ends in time, nothing of the user's runs, and nothing is changed."""

from __future__ import annotations

import itertools
import sys
import threading
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from unchanged import unchanged
from writes import sees

import tensornp as tnp
from tensornp.core.lowlevel import attributes
from tensornp.core.namespace.search import search
from tensornp.core.tensor.paths import expression_of

CALLS: list[str] = []


def forbidden(name):
    """Return a method that says that it was called, and raises."""

    def method(*_args, **_kwargs):
        CALLS.append(name)
        raise RuntimeError(f"{name} was called")

    return method


NAMES = """getattr getattribute eq hash iter next len bool contains getitem repr str call dir index array buffer
instancecheck subclasscheck torch_function array_function array_ufunc array_priority""".split()
METHODS = {f"__{name}__": forbidden(name) for name in NAMES}
METHODS |= {name: forbidden(name) for name in "items keys values data_ptr untyped_storage storage_offset numpy".split()}
ATTRIBUTES = {name: property(forbidden(name)) for name in ("__class__", "__dict__", "shape", "data", "base", "grad")}
HostileMeta = type("HostileMeta", (type,), {name: METHODS[name] for name in METHODS if name.startswith("__")})


def hostile(base, value):
    """Return an instance of a subclass of `base` that raises whatever is asked of it, and holds `value`."""
    body = {name: thing for name, thing in {**METHODS, **ATTRIBUTES}.items() if name != "__dict__"}
    cls = type("Hostile", (base,), body)
    if base is object:
        obj = cls.__new__(cls)
    elif base is dict:
        obj = dict.__new__(cls)
        dict.__setitem__(obj, "key", value)
    elif base is list:
        obj = list.__new__(cls)
        list.append(obj, value)
    elif base is np.ndarray:
        obj = np.ndarray.view(value.numpy(), cls)
    elif base is torch.Tensor:
        with torch._C.DisableTorchFunction():
            obj = torch.Tensor.as_subclass(value, cls)
    else:
        obj = tuple.__new__(cls, (value,))
    if base is object:
        object.__setattr__(obj, "inside", value)
    return obj


@pytest.mark.parametrize("base", [object, dict, list, tuple, np.ndarray, torch.Tensor])
def test_nothing_of_a_class_is_called(base):
    """No property, no `__getattr__`, `__class__`, `__eq__`, `__hash__`, `__iter__` or `__torch_function__`."""
    t = torch.ones(3)
    obj = hostile(base, t)
    CALLS.clear()
    found = tnp.aliases(t, {"odd": obj, "after": t})
    assert CALLS == []
    assert len(found) == 2
    suffix = {dict: "['key']", list: "[0]", tuple: "[0]", object: ".inside"}.get(base, "")
    assert {a.name for a in found} == {"after", f"odd{suffix}"}
    CALLS.clear()


def test_a_metaclass_is_not_called():
    """One that has no hash, and raises at a comparison."""
    t = torch.ones(3)
    odd = type.__call__(HostileMeta, "Odd", (), {"__slots__": ("inside",)})
    obj = object.__new__(odd)
    type.__getattribute__(odd, "inside").__set__(obj, t)
    CALLS.clear()
    assert [a.name for a in tnp.aliases(t, {"obj": obj})] == ["obj.inside"]
    assert CALLS == []


def test_what_is_no_tensor_is_refused_unasked():
    """A property `__class__` is not called."""
    CALLS.clear()
    with pytest.raises(tnp.TensornpError, match="not 'Hostile'"):
        tnp.aliases(hostile(object, 1), {})
    assert CALLS == []


def test_the_history_of_ipython_is_reached_by_its_own_name():
    """`Out[3]`, and neither `_3` nor `_oh`."""
    t = torch.ones(2)
    history = {3: t.numpy()}
    names = {"Out": history, "_oh": history, "_3": history[3], "_": history[3], "b": t.view(2)}
    assert {a.name: a.relation for a in tnp.aliases(t, names)} == {"b": "same elements", "Out[3]": "same elements"}
    assert sees(t, eval("Out[3]", names))


@pytest.mark.parametrize("bound", [{"Out": 5}, {}])
def test_the_history_has_its_other_name_where_the_user_has_bound_the_first(bound):
    """After `Out = 5` or `del Out`, IPython goes on to keep its results in `_oh`."""
    t = torch.ones(2)
    names = {**bound, "_oh": {3: t.numpy()}, "_3": t}
    assert [a.name for a in tnp.aliases(t, names)] == ["_3", "_oh[3]"]
    assert sees(t, eval("_oh[3]", names))


def test_what_a_name_of_the_user_reaches_is_called_by_that():
    """However deep it lies there, and although the history holds what leads to it."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    model(torch.ones(2)).sum().backward()
    optimizer.step()
    weight = model[0].weight
    outputs = {1: weight, 2: model[0], 3: optimizer.state}
    names = {"Out": outputs, "_oh": outputs, "deep": [{"model": model, "optimizer": optimizer}]}
    assert next(a.name for a in tnp.aliases(weight.grad, names)) == "deep[0]['model'][0].weight.grad"
    momentum = optimizer.state[weight]["momentum_buffer"]
    expected = "deep[0]['optimizer'].state[deep[0]['model'][0].weight]['momentum_buffer']"
    assert [a.name for a in tnp.aliases(momentum, names)] == [expected]


def test_what_imported_a_module_is_no_name_of_the_user():
    """A test runner's loader leads to all that it holds."""
    t = torch.ones(2)
    loader = SimpleNamespace(kept=t)
    names = {"__name__": "m", "__loader__": loader, "__spec__": SimpleNamespace(loader=loader), "t": t}
    assert [a.name for a in tnp.aliases(t, names)] == ["t"]


def test_a_namespace_that_is_among_its_own_names_adds_no_names():
    """After `g = globals()`, its history is history all the same."""
    names: dict = {"t": torch.ones(2), "_oh": {3: torch.ones(2)}}
    names |= {"_3": names["_oh"][3], "Out": names["_oh"], "g": names}
    assert [a.name for a in tnp.aliases(names["t"], names)] == ["t"]
    assert [a.name for a in tnp.aliases(names["_3"], names)] == ["Out[3]"]


def test_keys_are_not_compared():
    """A dictionary is read in order, whatever its keys do."""
    t = torch.ones(3)

    class Key:
        armed = False

        def __hash__(self):
            return 1 if not Key.armed else forbidden("__hash__")()

        __repr__ = __eq__ = forbidden("__eq__")

    holder = {Key(): t}
    Key.armed = True
    CALLS.clear()
    assert [a.name for a in tnp.aliases(t, {"holder": holder})] == ["holder[<Key>]"]
    assert CALLS == []


def test_ten_thousand_names():
    """All are looked at, and each alias is told."""
    t = torch.ones(10_000)
    names = {f"n{i}": t[i:] if i % 100 == 0 else torch.ones(1) for i in range(10_000)}
    found = tnp.aliases(t, names, max_seconds=600)
    assert [a.name for a in found] == [f"n{i}" for i in range(0, 10_000, 100)]
    assert (found.num_names, found.is_complete) == (10_000, True)
    t[9_900] = 7
    assert all(names[a.name][-100] == 7 for a in found)


@pytest.mark.slow
def test_a_module_with_a_hundred_thousand_parameters_is_left_in_time():
    """What was found until then is told, and that it is not all."""
    model, t = torch.nn.Module(), torch.ones(3)
    model._parameters.update({f"p{i}": torch.nn.Parameter(torch.zeros(1)) for i in range(100_000)})
    found = tnp.aliases(t, {"model": model, "b": t.view(3)}, max_seconds=0.001)
    assert [a.name for a in found] == ["b"]
    assert not found.is_complete
    assert found.num_names < 100_000
    assert f"search stopped at {found.num_names:,} names" in str(found)
    found = tnp.aliases(model.p99999.detach(), {"model": model}, max_seconds=600)
    assert [a.name for a in found] == ["model.p99999"]
    assert found.is_complete


def test_a_list_of_more_than_a_million_items_is_searched_to_its_end():
    """However long a container is, only time sets a bound."""
    t = torch.ones(3)
    found = tnp.aliases(t, {"many": [0] * 1_000_000 + [t]}, max_seconds=600)
    assert ([a.name for a in found], found.is_complete) == (["many[1000000]"], True)


def test_no_depth_is_too_deep():
    """A chain of lists longer than the stack of Python, that ends in itself."""
    t = torch.ones(3)
    chain = first = [t]
    for _ in range(sys.getrecursionlimit() * 3):
        chain = [chain]
    first.append(chain)
    found = tnp.aliases(t, {"chain": chain}, max_seconds=600)
    assert [a.name for a in found] == ["chain" + "[0]" * (sys.getrecursionlimit() * 3 + 1)]
    while chain is not first:
        chain = chain[0]
    first.clear()


@pytest.mark.slow
def test_names_that_change_while_they_are_searched():
    """Another thread adds and deletes names, keys and tensors, and moves storages: no exception."""
    t = torch.ones(1000)
    names = {f"n{i}": {"a": [t[i:]], "b": {t[:i]}, "c": torch.nn.Linear(1, 1)} for i in range(200)}
    done = threading.Event()

    def change():
        i = 0
        while not done.is_set():
            i += 1
            names[f"m{i % 50}"] = {"x": t[i % 9 :]}
            names.pop(f"m{(i * 7) % 50}", None)
            inner = names[f"n{i % 200}"]
            inner[f"k{i % 5}"] = torch.ones(2)
            inner.pop(f"k{(i + 2) % 5}", None)
            inner["b"].add(torch.ones(1))
            inner["c"].weight.data = torch.ones(1, 1 + i % 4)
            inner["a"][0].set_(torch.ones(1 + i % 7)) if i % 1000 == 0 else None

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(15):
            found = tnp.aliases(t, names, max_seconds=600)
            assert {a.relation for a in found} <= {"same elements", "overlapping", "stale", "same storage"}
            assert len(found) > 100
    finally:
        done.set()
        thread.join()


class Raising(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise RuntimeError("a mode was called")


MODES = {
    "a raising mode": Raising,
    "fake tensors": FakeTensorMode,
    "inference": torch.inference_mode,
    "meta device": lambda: torch.device("meta"),
    "no mode": nullcontext,
}


@pytest.mark.parametrize("name", MODES)
def test_modes_do_not_matter(name):
    """What a user has entered sees nothing of the search, and changes nothing of its result."""
    t, z = torch.ones(4), torch.eye(3).to_sparse().coalesce()
    names = {"a": t.numpy(), "b": t[::2], "c": torch.ones(4), "d": t.untyped_storage(), "z": z, "v": z.values()}
    with MODES[name]():
        found, parts = tnp.aliases(t, names), tnp.aliases(names["v"], names)
    assert {a.name: a.relation for a in found} == {"a": "same elements", "b": "overlapping", "d": "reinterpreted"}
    assert {a.name: a.relation for a in parts} == {"v": "same object", "z": "overlapping"}
    names["a"][2] = 5
    assert (t[2], names["b"][1]) == (5, 5)


@pytest.fixture
def _every_warning():
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.usefixtures("_every_warning")
def test_looking_leaves_no_mark():
    """Storages stay resizable, lazy copies lazy, versions and gradients as they were, and nothing warns."""
    t, owner = torch.ones(4), torch.ones(4, requires_grad=True)
    (owner * 2).sum().backward()
    odd = [torch._lazy_clone(t), t[1:], torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.eye(2).conj()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        odd.append(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    names = {f"n{i}": x for i, x in enumerate([t, owner, *odd])}
    with unchanged(t, owner, *odd):
        for target in names.values():
            assert "same object" in {a.relation for a in tnp.aliases(target, names)}
    assert t.untyped_storage().resizable()
    assert torch._C._is_cow_tensor(odd[0])


def test_a_huge_holder_does_not_hide_the_others():
    """Holders take turns: what a small one holds is found after a few looks, not after all that a huge one holds."""
    t = torch.zeros(2)
    names = {"huge": [torch.zeros(1)] * 1_000_000, "small": {"t": t}}
    searched = search(names, 600, lambda obj, kind, path: obj is t and expression_of(path) == "small['t']")
    assert not searched.is_complete, "it was found, and the search ended there"
    assert searched.num_names < 10_000


def test_plain_values_are_passed_over_and_hide_nothing():
    """Numbers and texts hold no tensor: several are one name to the search, and still others have their turn."""
    t = torch.zeros(2)
    names = {"numbers": [0] * 3_000_000, "texts": dict.fromkeys(range(1_000_000), ""), "small": {"t": t}}
    searched = search(names, 600, lambda obj, kind, path: obj is t and expression_of(path) == "small['t']")
    assert not searched.is_complete, "it was found, and the search ended there"
    assert searched.num_names < 2000
    found = []
    searched = search(names, 600, lambda obj, kind, path: found.append(expression_of(path)))
    assert found == ["small['t']"]
    assert searched.is_complete
    assert searched.num_names < 300_000


@pytest.mark.parametrize(
    "holder", [set(range(100_000)), SimpleNamespace(**{f"a{i}": i for i in range(100_000)})], ids=["set", "object"]
)
def test_a_huge_container_is_not_copied_before_its_first_item(holder, monkeypatch):
    """So a search can stop within it: ten million members of a set would take ten times what a card may."""
    lengths = []
    chunks = itertools.islice
    monkeypatch.setattr(attributes.itertools, "islice", lambda items, n: lengths.append(n) or chunks(items, n))
    found = []
    assert search({"holder": holder}, 600, lambda *place: found.append(place)).is_complete
    assert found == []
    assert len(lengths) > 100_000 / 5000


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_the_parameters_of_a_scripted_module_are_found():
    """They lie in C++, and so do its buffers; each name gives the very object."""
    model = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)))
    found = {}
    searched = search({"model": model}, 600, lambda obj, kind, path: found.update({expression_of(path): (obj, kind)}))
    assert searched.is_complete
    assert sum(kind == "parameter" for _, kind in found.values()) == 4
    assert sum(kind == "buffer" for _, kind in found.values()) == 3
    for name, (obj, _) in found.items():
        assert eval(name, {"model": model}).data_ptr() == obj.data_ptr()
    (alias,) = tnp.aliases(model[0].weight.detach(), {"model": model})
    assert (alias.kind, alias.relation) == ("parameter", "same elements")


def test_a_class_that_only_has_the_name_of_a_container_is_none():
    """As what torch.fx makes of a Sequential; its members are reached by their names."""
    model = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)))
    assert type(model).__name__ == "Sequential"
    found: list[str] = []
    search(
        {"model": model},
        600,
        lambda obj, kind, path: found.append(expression_of(path)) if kind == "parameter" else None,
    )
    assert len(found) == 4
    assert {id(eval(name, {"model": model})) for name in found} == set(map(id, model.parameters()))


def test_an_attribute_that_is_no_identifier_has_a_name_that_evaluates():
    """`setattr` takes any text, and so does a namespace of parsed arguments."""
    tensor = torch.zeros(3)
    module = torch.nn.Identity()
    namespace = {"plain": SimpleNamespace(**{"a-b": tensor, "class": tensor}), "module": module}
    module.__dict__["no name"] = tensor
    names = [alias.name for alias in tnp.aliases(tensor, namespace)]
    assert len(names) == 3
    assert all(eval(name, dict(namespace)) is tensor for name in names)

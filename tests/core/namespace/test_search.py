"""A search through a hostile namespace: it ends in time, nothing of the user's runs, and nothing is changed."""

from __future__ import annotations

import re
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from writes import sees

import tensornp as tnp
from tensornp.core.memory.aliases import find_aliases
from tensornp.core.namespace.search import Search
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


@pytest.mark.slow
def test_a_module_with_twenty_thousand_parameters_is_left_in_time():
    """What was found until then is told, and that it is not all."""
    model, t = torch.nn.Module(), torch.ones(3)
    model._parameters.update({f"p{i}": torch.nn.Parameter(torch.zeros(1)) for i in range(20_000)})
    found, _ = find_aliases(t, {"model": model, "b": t.view(3)}, 0.001)
    assert [a.name for a in found] == ["b"]
    assert not found.is_complete
    assert re.search(r"search stopped at [0-9,]+ names", str(found))
    found, _ = find_aliases(model.p19999.detach(), {"model": model}, 600)
    assert [a.name for a in found] == ["model.p19999"]
    assert found.is_complete


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
    names = {"a": t.numpy(), "b": t[::2], "c": torch.ones(4), "z": z, "v": z.values()}
    with MODES[name]():
        found, parts = tnp.aliases(t, names), tnp.aliases(names["v"], names)
    assert {a.name: a.relation for a in found} == {"a": "same elements", "b": "overlapping"}
    assert {a.name: a.relation for a in parts} == {"v": "same object", "z": "overlapping"}
    names["a"][2] = 5
    assert (t[2], names["b"][1]) == (5, 5)


def test_a_huge_holder_does_not_hide_the_others():
    """Holders take turns: what a small one holds is found after a few looks, not after all that a huge one holds."""
    t, met = torch.zeros(2), []
    names = {"huge": [torch.zeros(1)] * 100_000, "small": {"t": t}}
    assert not Search(names, 600, lambda obj, kind, path: met.append(obj is t)).stopped
    assert met.index(True) < 10_000


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_the_parameters_of_a_scripted_module_are_found():
    """They lie in C++, and so do its buffers; each name gives the very object."""
    model = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)))
    found = {}
    searched = Search({"model": model}, 600, lambda obj, kind, path: found.update({expression_of(path): (obj, kind)}))
    assert not searched.stopped
    assert sum(kind == "parameter" for _, kind in found.values()) == 4
    assert sum(kind == "buffer" for _, kind in found.values()) == 3
    for name, (obj, _) in found.items():
        assert eval(name, {"model": model}).data_ptr() == obj.data_ptr()
    (alias,) = tnp.aliases(model[0].weight.detach(), {"model": model})
    assert (alias.kind, alias.relation) == ("parameter", "same elements")

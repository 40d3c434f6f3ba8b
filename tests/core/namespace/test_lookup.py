"""Names that are looked up where a search has found them: the same object, and nothing of the user's runs."""

from __future__ import annotations

import types
import warnings
from collections import OrderedDict, UserDict, deque, namedtuple
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
import tensordict
import torch
from torch.nn.utils.parametrizations import weight_norm

import tensornp as tnp
from tensornp.core.namespace.lookup import look_up
from tensornp.core.namespace.search import Search
from tensornp.core.tensor.paths import expression_of
from tensornp.errors import BadRequestError


class Slotted:
    """Half of it in slots, half in a dictionary."""

    __slots__ = ("__dict__", "inside")
    shared = torch.zeros(1)

    def __init__(self) -> None:
        self.inside, self.beside = torch.zeros(1), np.zeros(1)
        self.__dict__["a b"] = torch.zeros(1)

    @property
    def computed(self) -> torch.Tensor:
        raise AssertionError("a property was run")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("__getattr__ was run")

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("__getitem__ was run")


class Colour(StrEnum):
    """Keys that are equal to text."""

    RED = "red"

    def __eq__(self, other: object) -> bool:
        raise AssertionError("keys were compared")

    __hash__ = str.__hash__


@dataclass
class Batch:
    x: torch.Tensor = field(default_factory=lambda: torch.zeros(1))


class Output(OrderedDict):
    """A dict with attributes, as models return them."""


Pair = namedtuple("Pair", "first second")


def scripted() -> torch.nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(torch.nn.Sequential(torch.nn.Linear(1, 1)))


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Return a namespace in which a search finds tensors by every kind of step."""
    z = lambda: torch.zeros(1)  # noqa: E731
    model = torch.nn.Sequential(OrderedDict(first=torch.nn.Linear(2, 2), second=torch.nn.BatchNorm1d(2)))
    model(torch.ones(2, 2)).sum().backward()
    rest = torch.nn.Module()
    rest.register_buffer("a b", z())
    rest.many = torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])
    rest.by_name = torch.nn.ModuleDict({"x y": torch.nn.Linear(1, 1)})
    rest.row, rest.table = torch.nn.ParameterList([z()]), torch.nn.ParameterDict({"k": z()})
    rest.plain = z()
    setattr(rest, "not a name", z())
    output = Output(logits=z())
    output.extra = z()
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()
    param = torch.nn.Parameter(z())
    param.mask = z()  # type: ignore[attr-defined]
    return {
        "model": model, "rest": rest, "optimizer": optimizer, "param": param, "slotted": Slotted(),
        "batch": Batch(), "output": output, "pair": Pair(z(), [z()]), "row": deque([z(), (z(),)]), "Out": {3: z()},
        "d": {"a b": z(), 1: z(), 2.5: z(), None: z(), b"b": z(), -3: z(), Colour.RED: z(), "'": z()},
        "scripted": scripted(), "sparse": torch.eye(2).to_sparse(),
        "space": types.SimpleNamespace(t=z()), "normed": weight_norm(torch.nn.Linear(1, 1)),
        "user": UserDict(a=z()), "tensors": tensordict.TensorDict({"b": z(), "n": {"c": z()}}, []),
        "keyed": {(0, 1): z()},
        "two": {"deep": [{"er": Slotted()}]},
    }  # fmt: skip


def test_every_name_that_a_search_gives_is_found_again(names):
    """What `%tensors` and cards print can be watched by that name, and is the same object."""
    namespace = names
    places = []
    assert not Search(namespace, 600, lambda *place: places.append(place)).stopped
    keys, found = {}, [(obj, path) for obj, _, path in places]
    for obj, kind, path in places:
        if kind == "parameter":
            keys.setdefault(id(obj), path)
    printed = {expression_of(path, keys): obj for obj, path in found}
    assert len(printed) > 60
    unnamed = {name for name in printed if "<" in name}
    assert unnamed == {"d[<Colour>]"}, "other keys are no plain constants"
    for name, obj in printed.items():
        if name not in unnamed and not name.startswith("scripted"):
            assert look_up(name, namespace) is obj, name
        elif name not in unnamed:
            # A scripted module makes a new object at each question.
            assert torch.equal(look_up(name, namespace), obj), name


@pytest.mark.parametrize(
    "name",
    """model.first.weight model.second.running_mean rest.many[-1].weight model[-2].bias model._modules['first'].weight
    pair[0] pair.second[-1] row[-1][0] output['logits'] output.extra slotted.shared model.first.weight.grad d[True]
    Batch.kept numpy.kept""".split(),
)
def test_other_names_for_the_same(names, name):
    """Names that users type although cards print others: negative indices, items and attributes, members of classes."""
    Batch.kept = torch.zeros(1)  # type: ignore[attr-defined]
    module = types.ModuleType("numpy")
    module.kept = Batch.kept  # type: ignore[attr-defined]
    namespace = {**names, "Batch": Batch, "numpy": module}
    assert look_up(name, namespace) is eval(name, dict(namespace))


@pytest.mark.parametrize(
    "expression",
    [*"""q.pop() f() model.state_dict() model.state_dict()['first.weight'] model.get_parameter(f()) a+b (b:=3) [w]
    slotted.computed slotted.anything slotted['a'] normed.weight d[f()] d[:2] d[name] d['no'] pair[2] w[0] w[::2] w.T
    w.data.grad a.T missing.weight w[ d['\x00']""".split(), "(" * 500 + "w" + ")" * 500, "w" + ".a" * 200_000],
)  # fmt: skip
def test_the_rest_is_refused_in_one_sentence(names, expression):
    """And nothing is run to find that out."""

    def run() -> Any:
        raise AssertionError("a function was run")

    namespace = {**names, "q": [torch.zeros(1)], "f": run, "w": torch.zeros(3), "a": np.zeros(2), "name": "a b"}
    with pytest.raises(BadRequestError) as caught:
        look_up(expression, namespace)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert len(namespace["q"]) == 1


def test_code_that_exec_runs_is_told_its_own_names():
    """Its namespace may have no `__name__`."""
    namespace = {"tnp": tnp, "w": torch.ones(3)}
    exec("found = [alias.name for alias in tnp.aliases(w)]", namespace)
    assert namespace["found"] == ["w"]

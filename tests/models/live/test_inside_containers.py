"""What containers hold besides tensors: modules and optimizers are listed, and what cannot be is named."""

from __future__ import annotations

import collections
import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

import tensornp as tnp
from tensornp.render.models.comparison import weights_comparison_document


@dataclasses.dataclass
class Record:
    held: Any
    beside: Any


class Pair(NamedTuple):
    held: Any
    beside: Any


class Foo:
    def __init__(self, held: Any) -> None:
        self.held = held


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


class Loading(Mapping[str, Any]):
    """A mapping that may load what it gives, and must not be asked."""

    def __getitem__(self, key: str) -> Any:
        raise AssertionError("asked")

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("asked")

    def __len__(self) -> int:
        raise AssertionError("asked")


CONTAINERS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "dict": (lambda held, beside: {"held": held, "beside": beside}, "held"),
    "ordered": (lambda held, beside: collections.OrderedDict(held=held, beside=beside), "held"),
    "nested": (lambda held, beside: {"a": [{"held": held}], "beside": beside}, "a.0.held"),
    "list": (lambda held, beside: [beside, held], "1"),
    "tuple": (lambda held, beside: (beside, held), "1"),
    "deque": (lambda held, beside: collections.deque([beside, held]), "1"),
    "namedtuple": (Pair, "held"),
    "dataclass": (Record, "held"),
    "user dict": (lambda held, beside: collections.UserDict(held=held, beside=beside), "held"),
}


def linear(value: float) -> nn.Module:
    made = nn.Sequential(collections.OrderedDict(fc=nn.Linear(3, 2)))
    return made.requires_grad_(True).apply(lambda one: [nn.init.constant_(p, value) for p in one.parameters()])


def stepped(value: float) -> torch.optim.Optimizer:
    parameter = nn.Parameter(torch.full((2,), value))
    optimizer = torch.optim.Adam([parameter])
    # Which it takes beside parameters since torch 2.6.
    optimizer.param_groups[0]["param_names"] = ["p"]
    parameter.grad = torch.full((2,), value)
    optimizer.step()
    return optimizer


LISTED: dict[str, tuple[Callable[[float], Any], list[str]]] = {
    "module": (linear, ["fc.weight", "fc.bias"]),
    "scripted module": (lambda value: torch.jit.script(linear(value)), ["fc.weight", "fc.bias"]),
    "optimizer": (stepped, ["state.p.step", "state.p.exp_avg", "state.p.exp_avg_sq"]),
    "dataclass": (lambda value: Record(linear(value), 3), ["held.fc.weight", "held.fc.bias"]),
    "parameters": (lambda value: nn.ParameterList([torch.full((2,), value)]), ["0"]),
}

NAMED: dict[str, tuple[Callable[[float], Any], str]] = {
    "object with a tensor": (lambda value: Foo(torch.full((2,), value)), "Foo"),
    "slots": (lambda value: Slotted(torch.full((2,), value)), "Slotted"),
    "mapping": (lambda value: Loading(), "Loading"),
    "chain map": (lambda value: collections.ChainMap({"a": torch.full((2,), value)}), "ChainMap"),
    "scheduler": (lambda value: torch.optim.lr_scheduler.StepLR(stepped(value), 1), "StepLR"),
}

PLAIN: dict[str, Callable[[], Any]] = {
    "number": lambda: 1.5,
    "text": lambda: "text",
    "none in a list": lambda: [None],
    "device": lambda: torch.device("cpu"),
    "size": lambda: torch.Size([2, 3]),
    "class": lambda: nn.Linear,
    "function": lambda: linear,
    "library": lambda: torch,
    "loss": nn.CrossEntropyLoss,
    "set": lambda: {1, 2},
    "empty": dict,
}

T = torch.arange(3.0)


def in_turn(held: Iterable[str]) -> list[tuple[str, str]]:
    """Return each of what is held with a container, and each container at least once."""
    return list(zip(itertools.cycle(CONTAINERS), [*held, *held]))[: max(len(list(held)), len(CONTAINERS))]


@pytest.mark.parametrize(("container", "what"), in_turn(LISTED))
def test_what_has_weights_is_listed_in_every_container(container: str, what: str) -> None:
    """Under the name of its place, by code that reaches it; it makes a difference to a comparison."""
    (build, place), (make, tails) = CONTAINERS[container], LISTED[what]
    tree = build(make(1.0), T)
    w = tnp.weights(tree, expression="tree")
    names = [".".join(filter(None, (place, tail))) for tail in tails]
    assert [name for name in w if name.startswith(place)] == names
    assert len(w) == len(names) + 1
    assert w.problems == []
    for name in names:
        reached = eval(w[name].code, {"tree": tree, "torch": torch})
        assert reached.untyped_storage().data_ptr() == w[name].tensor.untyped_storage().data_ptr()
        assert reached.shape == w[name].shape
        assert name in tnp.card(w).text
    same, other = tnp.compare(tree, build(make(1.0), T.clone())), tnp.compare(tree, build(make(2.0), T.clone()))
    assert (same.equal, same.same_bits, same._not_listed) == (True, True, ())
    assert not other.equal
    assert set(other.changed()) <= set(names)
    assert other.changed()


@pytest.mark.parametrize(("container", "what"), in_turn(NAMED))
def test_what_cannot_be_listed_is_named_and_makes_nothing_equal(container: str, what: str) -> None:
    """In the problems, in the comparison, and in its words."""
    (build, place), (make, class_name) = CONTAINERS[container], NAMED[what]
    held = make(1.0)
    tree = build(held, T)
    w = tnp.weights(tree, expression="tree")
    said = f"1 object was not looked into: {place} ({class_name})"
    assert (len(w), list(w.not_listed), w.problems) == (1, [said], [said])
    assert said in tnp.card(w).text
    found = tnp.compare(tree, build(make(2.0), T.clone()))
    assert (found.equal, found.same_bits) == (False, False)
    assert found._not_listed == (f"both: {said}",)
    assert "same bits" not in repr(found)
    assert found._told() == "what was compared is equal"
    assert said in weights_comparison_document(found).text()


@pytest.mark.parametrize(("container", "what"), in_turn(PLAIN))
def test_what_holds_no_weights_is_no_problem(container: str, what: str) -> None:
    """Plain values, classes and functions stand next to the weights in many checkpoints."""
    build, _ = CONTAINERS[container]
    w = tnp.weights(build(PLAIN[what](), T), expression="tree")
    # What is registered as None is told, as of a loss.
    assert (sum(not one._is_nothing for one in w.values()), w.problems) == (1, [])
    assert tnp.compare(build(PLAIN[what](), T), build(PLAIN[what](), T.clone())).equal


def test_cycles_end() -> None:
    """Of containers, of objects, and of both."""
    tree: dict[str, Any] = {"t": T, "model": linear(1.0)}
    tree |= {"self": tree, "list": [tree]}
    assert tnp.weights(tree).problems == []
    other = copy.deepcopy(tree)
    assert tnp.compare(tree, other).equal
    tree["foo"] = Foo(tree)
    assert tnp.weights(tree).not_listed == ("1 object was not looked into: foo (Foo)",)


def test_nothing_of_an_unknown_class_runs() -> None:
    """Neither of an object nor of what it holds."""

    class Trap:
        def __init__(self) -> None:
            object.__setattr__(self, "held", {"t": T + 1})

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

        __eq__ = __hash__ = __iter__ = __len__ = __bool__ = __repr__ = __getattribute__  # type: ignore[assignment]

    assert tnp.weights({"t": T, "trap": Trap()}).not_listed == ("1 object was not looked into: trap (Trap)",)

"""What an object is, by its type alone: nothing that a class of the user's computes is believed, or called."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any
from unittest.mock import Mock

import torch

import tensornp as tnp
from tensornp.core.lowlevel.attributes import class_name, is_tensor, module_name
from tensornp.core.memory.former import Former
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import find_surroundings


class _Secretive(type):
    @property
    def __name__(cls) -> str:
        raise RuntimeError("no name for you")

    @property
    def __module__(cls) -> str:
        raise RuntimeError("nor a module")


class Hidden(metaclass=_Secretive):
    """A class that does not say what it is called."""


class Homeless:
    """A class that belongs nowhere."""

    __module__ = None  # type: ignore[assignment]


def test_a_class_that_does_not_tell_its_name_is_named_all_the_same() -> None:
    """The name is the one that the class statement gave, whatever a metaclass makes of it."""
    assert (class_name(Hidden), module_name(Hidden)) == ("Hidden", __name__)
    assert (class_name(Homeless), module_name(Homeless)) == ("Homeless", "")


def test_what_only_says_that_it_is_a_tensor_is_none() -> None:
    """A mock answers `isinstance` as its spec would; its type does not."""
    assert is_tensor(torch.zeros(1)) and is_tensor(torch.nn.Parameter(torch.zeros(1)))
    assert not is_tensor(Mock(spec=torch.Tensor)) and not is_tensor(torch.Tensor)


def test_classes_whose_instances_were_looked_at_come_free() -> None:
    """A cell that defines a class again and again piles nothing up."""
    classes = []
    for _ in range(5):

        class Held:
            __slots__ = ("__dict__", "__weakref__", "tensor")

        class Node(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, t: torch.Tensor) -> torch.Tensor:
                ctx.save_for_backward(t)
                return t * 2

        class Kind(torch.Tensor):
            pass

        held = Held()
        held.tensor = torch.ones(2, requires_grad=True)
        held.tracked = Node.apply(held.tensor)
        held.odd = torch.ones(2).as_subclass(Kind)
        found = tnp.aliases(held.tensor, {"held": held})
        assert [alias.name for alias in found] == ["held.tensor"]
        for tensor in (held.tensor, held.odd):
            look = partial(find_surroundings, namespace={"held": held}, max_seconds=10.0, former=Former(), shown_as="")
            summarize(tensor, DisplayOptions(), look)
        classes += map(weakref.ref, (Held, Node, Kind))
    del held, Held, Node, Kind, found, tensor, look
    gc.collect()
    assert [cls() for cls in classes if cls() is not None] == []

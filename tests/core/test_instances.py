"""What an object is, by its type alone: nothing that a class of the user's computes is believed, or called."""

from __future__ import annotations

from unittest.mock import Mock

import torch

from tensornp.core.instances import class_name, is_tensor, module_name


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

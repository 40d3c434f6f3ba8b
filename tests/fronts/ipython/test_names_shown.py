"""Names that a user's program has made: of classes, variables and parameters, whatever is in them."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from display import display

import tensornp as tnp

NASTY = "a\x1b[2J\nb\u202ec"
SHOWN = r"a\x1b[2J\nb\u202ec"


class _Secretive(type(torch.Tensor)):
    @property
    def __name__(cls):
        raise RuntimeError("no name for you")


class Hidden(torch.Tensor, metaclass=_Secretive):
    """A tensor class that does not say what it is called."""


class _Counting(type(torch.Tensor)):
    __name__ = 3


class Numbered(torch.Tensor, metaclass=_Counting):
    """A tensor class whose name is no text."""


class Homeless(torch.Tensor):
    """A tensor class that belongs nowhere."""

    __module__ = None


class _Silent(Exception):
    def __str__(self):
        raise RuntimeError("no message either")


class Failing(torch.Tensor):
    """A tensor whose values nobody gets, nor why."""

    __torch_dispatch__ = classmethod(lambda *_, **__: None)

    def dequantize(self):
        raise _Silent


def _census(shell):
    shell.run("%tensors")
    return shell.displayed[0]


@pytest.mark.parametrize("cls", [Hidden, Numbered, Homeless], ids=["raises", "no text", "no module"])
def test_a_class_that_does_not_tell_its_name_has_a_card_and_a_row(shell, cls):
    """Neither the card, nor a table, nor the whole of %tensors fails for one odd class."""
    t = torch.arange(3.0).as_subclass(cls)
    # IPython itself asks a class for its name, and shows nothing of an object where that raises.
    card = display(t) if cls is Hidden else shell.show(t)["text/plain"]
    assert "array([0., 1., 2.]" in card and type.__dict__["__name__"].__get__(cls) in card
    assert "\nw " in shell.show({"w": t})["text/plain"]
    shell.namespace.update(odd=t, other=torch.zeros(2), holder=SimpleNamespace(inner=t))
    listed = _census(shell)["text/plain"]
    assert "odd" in listed and "other" in listed
    assert [alias.name for alias in tnp.aliases(t, shell.namespace)] == ["odd", "holder.inner"]
    np.testing.assert_array_equal(tnp.to_numpy(t), [0, 1, 2])


def test_an_error_that_cannot_be_printed_ends_in_a_card(shell):
    """The sentence of a card then names the class of the error alone."""
    assert "_Silent" in shell.show_within_modes(torch.zeros(3).as_subclass(Failing))["text/plain"]


def test_what_names_contain_is_shown_as_escapes(shell):
    """A name can neither clear a terminal, break a line, nor turn the reading direction."""
    cls = type(NASTY, (torch.Tensor,), {})
    model = torch.nn.Module()
    model.register_parameter(NASTY, torch.nn.Parameter(torch.ones(2)))
    t = torch.zeros(2).as_subclass(cls)
    shell.namespace.update({NASTY: t, "model": model})
    shown = {
        "card": shell.show(t),
        "parameter": shell.show(getattr(model, NASTY)),
        "table": shell.show({NASTY: t}),
        "census": _census(shell),
        "info": shell.show(tnp.inspect(t)),
        "aliases": {"text/plain": str(tnp.aliases(t, shell.namespace))},
    }
    # Another name of the same object stands behind the fold, which text has not.
    del shown["parameter"]["text/plain"]
    for view, bundle in shown.items():
        for text in bundle.values():
            assert SHOWN in text, view
            assert not {"\x1b", "\u202e"} & set(text), view
            assert "\nb" not in text, view
    with pytest.raises(tnp.NotATensorError) as raised:
        tnp.to_numpy(type(NASTY, (), {})())
    assert SHOWN in str(raised.value)


def test_a_mock_of_a_tensor_is_none(shell):
    """Asked by its type: what it says of itself is not believed."""
    mock = Mock(spec=torch.Tensor)
    assert "array" not in shell.show_within_modes(mock)["text/plain"]
    assert "Mock" in shell.show_within_modes([mock, torch.zeros(1)])["text/plain"]
    for function in (tnp.to_numpy, tnp.inspect, tnp.plan, tnp.aliases):
        with pytest.raises(tnp.NotATensorError, match="Mock"):
            function(mock)
    assert tnp.to_numpy({"a": mock, "b": torch.ones(1)})["a"] is mock
    shell.namespace.update(fake=mock, real=torch.zeros(3))
    assert "fake" not in _census(shell)["text/plain"]

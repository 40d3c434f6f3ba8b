"""Modules whose tables hold what torch would not have put there."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tensornp as tnp
from tensornp.core.summary.options import DisplayOptions
from tensornp.models.module_view import module_view
from tensornp.render.models.module import module_document


class _Lies:
    """Says that it is a module."""

    __class__ = property(lambda _: nn.Linear)


@pytest.mark.parametrize("child", ["a text", 3, [1], _Lies(), torch.ones(2), nn.Linear])
def test_what_is_no_module_hides_no_weights_of_others(child):
    """torch takes anything that is put into its tables by hand."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 2)))
    model[1]._modules["z"] = child
    weights = tnp.weights(model)
    assert list(weights) == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert len(weights.problems) == 1
    assert weights.problems[0].startswith("'1.z' is a") and ", and no module; " in weights.problems[0]
    assert weights.not_listed
    view = module_document(module_view(model, DisplayOptions()))
    assert "1.0.weight" in view.text() and weights.problems[0] in view.text()


@pytest.mark.parametrize("table", ["_parameters", "_buffers", "_modules"])
def test_what_is_no_table_of_members_hides_no_weights_of_others(table):
    """It is said of it alone."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[1].__dict__[table] = "a text"
    weights = tnp.weights(model)
    assert list(weights)[:2] == ["0.weight", "0.bias"]
    assert weights.problems == [f"{table} of '1' is a str, and no dictionary; nothing of it is listed"]


@pytest.mark.parametrize("found", [3, [3], [("a",)], [(1, 2, 3)], [("a", "b")], None])
def test_a_class_that_lies_about_itself_and_its_parameters_is_not_asked(found):
    """The tables of the module count."""
    lies = {"__class__": property(lambda _: int), "named_parameters": lambda *_, **__: found}
    model = nn.Sequential(nn.Linear(2, 2), type("Lies", (nn.Linear,), lies)(2, 2))
    assert list(tnp.weights(model)) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert tnp.weights(model).problems == []
    assert "{0..1}.weight" in tnp.card(tnp.weights(model)).text

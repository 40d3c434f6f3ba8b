"""What part of all weights some are."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.models.outline.choose import Asked
from tensornp.models.outline.outline import Outline


def test_states_of_optimizers_are_no_part_of_a_model():
    """A share is one of the weights; of states alone, one of these."""
    layers = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 9, bias=False), "b": torch.nn.Linear(3, 1, bias=False)})
    optimizer = torch.optim.Adam(layers.parameters())
    for one in layers.parameters():
        one.grad = torch.ones_like(one)
    optimizer.step()
    explorer = tnp.weights({"model": layers.state_dict(), "optimizer": optimizer.state_dict()})
    outline = Outline(list(explorer.values()))
    by_name = {one.name: outline.share_of(outline.sums_of([one])) for one in outline.weights}
    assert by_name["model.a.weight"] == 0.9
    assert outline.share_of(outline.sums) == 1
    states = Outline([one for one in outline.weights if one.kind == "state"])
    assert sum(states.share_of(states.sums_of([one])) for one in states.weights) == pytest.approx(1)
    assert {by_name[one.name] for one in states.weights} == {0}


def test_states_come_behind_the_model_when_sorted_by_share():
    """They have more elements, and no share."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 9), torch.nn.Linear(9, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for one in model.parameters():
        one.grad = torch.ones_like(one)
    optimizer.step()
    explorer = tnp.weights({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    outline = Outline(list(explorer.values()))
    for sort, first in (("share", "model"), ("elements", "optimizer.state")):
        asked = Asked(sort=sort, descending=True, orders_groups=True)
        top = [line.label for line in outline.lines(asked, 0, 100) if line.parent < 0]
        assert top[0] == first

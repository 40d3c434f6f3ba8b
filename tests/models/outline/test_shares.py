"""What part of all weights some are."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.models.outline.choose import Asked
from tensornp.models.outline.outline import Outline


def outline_of_checkpoint(model: torch.nn.Module) -> Outline:
    """Return the outline of a model's checkpoint with the state of an optimizer."""
    optimizer = torch.optim.Adam(model.parameters())
    for one in model.parameters():
        one.grad = torch.ones_like(one)
    optimizer.step()
    explorer = tnp.weights({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    return Outline(list(explorer.values()))


def test_states_of_optimizers_are_no_part_of_a_model():
    """A share is one of the weights; of states alone, one of these."""
    layers = {"a": torch.nn.Linear(3, 9, bias=False), "b": torch.nn.Linear(3, 1, bias=False)}
    outline = outline_of_checkpoint(torch.nn.ModuleDict(layers))
    by_name = {one.name: outline.share_of(outline.sums_of([one])) for one in outline.weights}
    assert by_name["model.a.weight"] == 0.9
    assert outline.share_of(outline.sums) == 1
    states = Outline([one for one in outline.weights if one.kind == "state"])
    assert sum(states.share_of(states.sums_of([one])) for one in states.weights) == pytest.approx(1)
    assert {by_name[one.name] for one in states.weights} == {0}


def test_states_come_behind_the_model_when_sorted_by_share():
    """They have more elements, and no share."""
    outline = outline_of_checkpoint(torch.nn.Sequential(torch.nn.Linear(3, 9), torch.nn.Linear(9, 1)))
    for sort, first in (("share", "model"), ("elements", "optimizer.state")):
        asked = Asked(sort=sort, descending=True, orders_groups=True)
        top = [line.label for line in outline.lines(asked, 0, 100) if line.parent < 0]
        assert top[0] == first


def test_the_text_of_a_checkpoint_tells_the_same_shares():
    """Of states, how many elements they have, and no share of the model."""
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(2)))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    for one in (optimizer, optimizer.state_dict()):
        told = tnp.card(tnp.weights({"model": model, "opt": one})).text.splitlines()
        assert "model.{0..1}: 2 × 20 elements, 50% each" in told
        states = [line for line in told if line.startswith("opt.state.{") and "elements" in line]
        assert states
        assert not any("%" in line for line in states)

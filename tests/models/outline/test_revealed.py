"""What has to be open so that the line of a weight is seen."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.models.outline.choose import Asked
from tensornp.models.outline.outline import Outline


def outline_of(model: torch.nn.Module) -> Outline:
    return Outline(list(tnp.weights(model).values()))


@pytest.mark.parametrize("toggled", [(), (0,), (0, 1, 2, 3)])
def test_the_line_of_every_weight_is_found(toggled):
    """In folds, in branches that were closed, and where it is alone; nothing that was open is closed."""
    layers = [torch.nn.TransformerEncoderLayer(8, 2, 16) for _ in range(3)]
    model = torch.nn.ModuleDict({"a": torch.nn.Sequential(*layers, torch.nn.Linear(2, 3)), "b": torch.nn.Linear(3, 3)})
    outline = outline_of(model)
    asked = Asked(toggled=frozenset(toggled))
    for number, weight in enumerate(outline.weights):
        seen, at = outline.revealed(asked, number)
        assert outline.lines(seen, at, 1)[0].number == number, weight.name
        assert outline.num_lines(seen) >= outline.num_lines(asked)


def test_of_what_is_folded_one_is_ordered_among_single_modules():
    """Twelve small layers are not the biggest because they are many; experts of layers count one by one."""
    layer = lambda: torch.nn.ModuleDict({"experts": torch.nn.ModuleList(torch.nn.Linear(3, 2) for _ in range(4))})  # noqa: E731
    layers = torch.nn.ModuleList(torch.nn.ModuleList([layer(), torch.nn.LayerNorm(6)]) for _ in range(12))
    outline = outline_of(torch.nn.ModuleDict({"layers": layers, "head": torch.nn.Linear(9, 9)}))
    seen = outline.lines(Asked(sort="elements", descending=True, orders_groups=True), 0, 20)
    told = {line.label: (line.num_alike, line.sums.numel // line.num_alike) for line in seen}
    assert [line.label for line in seen if line.level == 1] == ["head", "layers.{0..11}"]
    assert told["layers.{0..11}"] == (12, 44)
    assert [line.label for line in seen if line.level == 2][-2:] == ["1", "0.experts.{0..3}"]
    assert told["0.experts.{0..3}"] == (48, 8)


def test_in_a_list_nothing_opens():
    """What is left out of it has no line."""
    outline = outline_of(torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(3)]))
    asked = Asked(search="bias")
    names = [one.name for one in outline.weights]
    assert outline.revealed(asked, names.index("1.bias")) == (asked, 1)
    assert outline.revealed(asked, names.index("1.weight")) == (asked, -1)

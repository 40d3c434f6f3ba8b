"""Which classes of modules are said beside names."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.models.outline.choose import Asked
from tensornp.models.outline.classes import class_said
from tensornp.models.outline.outline import Outline

CLASSES = {"fc": "Linear", "layer_norm": "LayerNorm", "h.0": "Block", "h.1": "Block", "h.2": "Other", "h": "ModuleList"}
CLASSES |= {f"x.{i}.{name}": kind for i in range(2) for name, kind in (("fc", "Linear"), ("ln", "LN"))}


@pytest.mark.parametrize(
    ("prefixes", "said"),
    [
        (["fc"], "Linear"), (["layer_norm"], ""), (["h.0"], "Block"), (["h.0", "h.1", "h.1"], "2 × Block"),
        (["h.1", "h.2"], ""), (["x.0.fc", "x.1.fc"], "Linear"), (["x.0.ln", "x.1.ln"], ""),
        (["h"], ""), (["unknown"], ""), ([], ""),
    ],
)  # fmt: skip
def test_a_class_is_said_where_the_name_does_not(prefixes, said):
    """Of several, if they agree; of what only holds others, it is not."""
    assert class_said(prefixes, CLASSES) == said


def test_lines_of_a_module_say_their_classes():
    """Of a group, of what alone goes on from a name, and of layers that are folded; once."""
    blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(2, 2)) for _ in range(3))
    model = torch.nn.ModuleDict({"h": blocks, "out": torch.nn.Linear(2, 1), "last": torch.nn.Linear(2, 1, bias=False)})
    explorer = tnp.weights(model)
    assert explorer.classes == {
        "": "ModuleDict", "h": "ModuleList", "out": "Linear", "last": "Linear",
        **{f"h.{i}": "Sequential" for i in range(3)}, **{f"h.{i}.0": "Linear" for i in range(3)},
    }  # fmt: skip
    assert explorer["h"].classes is explorer.classes
    weights = [one for one in explorer.values() if not one._is_nothing]
    outline = Outline(weights, explorer.classes)
    said = {line.label: line.class_name for line in outline.lines(Asked(), 0, 100) if line.level == 1}
    assert said == {"h.{0..2}.0": "3 × Linear", "out": "Linear", "last.weight": "Linear"}
    below = [line.class_name for line in outline.lines(Asked(), 0, 100) if line.level > 1]
    assert below and not any(below)
    assert not any(line.class_name for line in Outline(weights).lines(Asked(), 0, 100))

"""How weights are sorted by a scan, and how its figures are written."""

from __future__ import annotations

import math

import pytest
import torch

import tensornp as tnp
from tensornp.models.outline.columns import FINDINGS, Asked, column_called, figures_of
from tensornp.models.scan.findings import Finding
from tensornp.widget.weight_rows import Found
from tensornp.widget.weight_tree import WeightTree


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("column", ["norm", FINDINGS])
def test_weights_without_a_figure_come_last(column, descending):
    """Whichever way they are sorted; equal ones stay as they are, and counters stand behind by a figure."""
    tree = WeightTree([*tnp.weights({name: torch.ones(2) for name in "abcde"}).values()], {})
    ranks = {"b": 1, "c": 2, "e": 1}
    tree.learn({name: Found((Finding(rank, "", ""),), figures={"norm": rank}) for name, rank in ranks.items()})
    chosen = tree.chosen(Asked(sort=column, descending=descending))
    assert [one.name for one in chosen] == [*("cbe" if descending else "bec"), "a", "d"]
    tensors = {"g.position_ids": torch.arange(9), "g.w": torch.ones(2), "h": torch.ones(3)}
    tree = WeightTree([*tnp.weights(tensors).values()], {})
    tree.learn({name: Found((), figures={"norm": float(one.double().norm())}) for name, one in tensors.items()})
    chosen = tree.chosen(Asked(sort="norm", descending=descending))
    assert [one.name for one in chosen] == [*(["h", "g.w"] if descending else ["g.w", "h"]), "g.position_ids"]


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("norm", 2.3456, "2.35"), ("norm", 8.0, "8.00"), ("norm", 979.1, "979"), ("norm", 0.0, "0"),
        ("mean", -0.5, "-0.500"), ("zeros", 0.0, "0"), ("zeros", 1e-6, "< 0.1%"), ("zeros", 0.9999, "> 99.9%"),
        ("zeros", 1.0, "100%"),
    ],
)  # fmt: skip
def test_a_figure_is_written_in_three_digits(column, value, text):
    """With its zeros; a share is none only where it is."""
    assert column_called(column).figure_text(value) == text


def test_a_figure_is_that_of_the_finite_elements():
    """And there is none where nothing is finite."""
    stats = tnp.stats(torch.tensor([3.0, -4.0, 0.0, math.nan]))
    assert figures_of(stats) == {
        "norm": pytest.approx(5), "mean": pytest.approx(-1 / 3), "std": stats.std, "max |x|": 4, "zeros": 0.25,
    }  # fmt: skip
    assert figures_of(tnp.stats(torch.full((3,), math.nan))) == {"zeros": 0}

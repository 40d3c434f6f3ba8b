"""Between what extremes figures lie below a branch, and how weights are sorted by what a scan has found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tensornp as tnp
from tensornp.models.outline.columns import FINDINGS, Asked, ScannedFigure, column_called, figure_columns, figures_of
from tensornp.models.outline.outline import Line, Outline

KEYS = st.sampled_from(["a", "b", "0", "1", "2", "w"])
NAMES = st.lists(st.lists(KEYS, min_size=1, max_size=3).map(".".join), min_size=1, max_size=12, unique=True)


class Told(NamedTuple):
    """What a scan has found, made up."""

    number: Callable[[str, str], float | None]

    def worst(self, name: str) -> str:
        return ""


def outline_of(names: list[str]) -> Outline:
    return Outline([*tnp.weights({name: torch.ones(2) for name in names}).values()])


def lines_of(outline: Outline, parent: int = -1) -> Iterator[Line]:
    """Yield the lines of an outline with all branches open."""
    for one in outline.below(parent, Asked()):
        line = outline.line(one, parent)
        yield line
        if line.has_below:
            yield from lines_of(outline, line.id)


@pytest.mark.slow
@settings(deadline=None)
@given(NAMES, st.data())
def test_below_a_branch_are_those_whose_figures_it_tells(names, data):
    """By brute force: what is below an opened branch, down to single weights."""
    outline = outline_of(names)
    norms = {name: data.draw(st.none() | st.floats(0, 10)) for name in names}
    kinds = data.draw(st.dictionaries(st.sampled_from(names), st.sampled_from([(0, "NaN"), (4, "constant")])))
    figures = {name: {"norm": norm} for name, norm in norms.items() if norm is not None}
    every = list(lines_of(outline))
    for at, line in enumerate(every):
        if not line.has_below:
            continue
        below = {one.name for one in line.weights}
        for other in every[at + 1 :]:
            if other.level <= line.level:
                break
            below |= {one.name for one in other.weights}
        known = [norms[name] for name in below if norms[name] is not None]
        # Of what was not read, nothing is claimed.
        assert outline.extremes(line.id, figures).get("norm") == (
            (min(known), max(known)) if len(known) == len(below) else None
        )
        found = {kind: set(some) for kind, some in outline.kinds(line.id, kinds)}
        assert found == {kind: {name for name in below if kinds.get(name) == kind} for kind in found}
        assert set().union(*found.values()) == below & kinds.keys()
        assert [*found] == sorted(found)
        assert {one.name for one in outline.weights_of(line.id)} == below


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("column", ["norm", FINDINGS])
def test_of_what_nothing_is_found_nothing_comes_first(column, descending):
    """Whichever way they are sorted; equal ones stay as they are."""
    outline = outline_of(["a", "b", "c", "d", "e"])
    found = {"b": 1.0, "c": 2.0, "e": 1.0}
    chosen = outline.chosen(Asked(sort=column, descending=descending), Told(lambda _, name: found.get(name)))
    assert [one.name for one in chosen] == [*("cbe" if descending else "bec"), "a", "d"]


@pytest.mark.parametrize("descending", [False, True])
def test_what_counts_comes_last_and_is_no_extreme(descending):
    """Whichever way weights are sorted by a figure; alone, it has figures as any other."""
    tensors = {"g.position_ids": torch.arange(9), "g.w": torch.ones(2), "h": torch.ones(3)}
    outline = Outline([*tnp.weights(tensors).values()])
    figures = {name: {"norm": float(one.double().norm())} for name, one in tensors.items()}
    asked = Asked(sort="norm", descending=descending)
    chosen = outline.chosen(asked, Told(lambda column, name: figures[name][column]))
    assert [one.name for one in chosen] == [*(["h", "g.w"] if descending else ["g.w", "h"]), "g.position_ids"]
    group, *others = lines_of(outline)
    assert outline.extremes(group.id, figures)["norm"] == (2**0.5, 2**0.5)
    assert [line.is_quiet for line in others] == [True, False, False]


@pytest.mark.parametrize(
    ("column", "least", "greatest", "text"),
    [
        ("norm", 1.0, 2.34567, "up to 2.35"),
        ("norm", 2.3456, 2.3459, "2.35"),
        ("norm", 15.95, 16.004, "up to 16.0"),
        ("norm", 8.0, 8.0, "8.00"),
        ("norm", 979.1, 979.1, "979"),
        ("norm", 0.0, 0.0, "0"),
        ("mean", -0.5, 0.25, "±0.500"),
        ("mean", 0.25, 0.5, "up to 0.500"),
        ("mean", -0.5, -0.25, "down to -0.500"),
        ("mean", -0.5, -0.5, "-0.500"),
        ("zeros", 0.0, 0.0, "0"),
        ("zeros", 1e-6, 1e-6, "< 0.1%"),
        ("zeros", 0.9999, 0.9999, "> 99.9%"),
        ("zeros", 0.0, 1.0, "up to 100%"),
    ],
)
def test_a_figure_is_written_in_three_digits(column, least, greatest, text):
    """Of several weights, the extreme; figures keep their zeros, and a share is none only where it is."""
    figure = column_called(column).figure
    assert isinstance(figure, ScannedFigure)
    assert figure.text_of(least, greatest) == text
    assert bool(figure.title_of(least, greatest)) == (text[0] in "ud±")


def test_a_figure_is_that_of_the_finite_elements():
    """And there is none where nothing is finite."""
    values = torch.tensor([3.0, -4.0, 0.0, math.nan])
    stats = tnp.stats(values)
    found = figures_of(stats)
    assert found == {
        "norm": pytest.approx(5), "mean": pytest.approx(-1 / 3), "std": stats.std, "max |x|": 4, "zeros": 0.25,
    }  # fmt: skip
    nothing = tnp.stats(torch.full((3,), math.nan))
    assert [figure.of(nothing) for _, figure in figure_columns()] == [None, None, None, None, 0, None, None]

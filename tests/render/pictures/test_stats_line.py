"""The line of figures on a card, as text and as HTML."""

from __future__ import annotations

import base64
import io
import math
import re
import sys

import pytest
import torch
from PIL import Image

import tensornp as tnp
from tensornp.render.pictures.stats_line import sparkline_of

ODD = torch.tensor([[1.0, math.nan, math.inf], [-math.inf, 2, 2]])
GRID = torch.arange(12.0).view(3, 4)


def line(obj: object, **options: object) -> str:
    return tnp.card(obj, **options).text.split("\n")[-1]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (GRID, "mean 5.5 ± 3.45 · 0 … 11 · 1 zero  ██▄█▄██"),
        (torch.zeros(3, 4), "all 0"),
        (torch.arange(2000.0), "mean 1000 ± 577 · 0 … 1999 · 1 zero  ████████████████████████"),
        (torch.tensor([2**53 + 1, 5, -7]), "mean 3e+15 ± 4.25e+15 · -7 … 9007199254740993"),
        (ODD, "mean 1.67 ± 0.471 · 1 … 2"),
        (torch.tensor([[0.0, -math.inf]] * 2), "finite: all 0 · 2 -Inf"),
        (torch.eye(3, 4) > 0, "3 of 12 True"),
        (GRID.to(torch.complex64), "modulus: mean 5.5"),
    ],
)  # fmt: skip
def test_the_line_says_what_is_worth_saying(obj, expected):
    """Zeros only where there are any; what gives cause for alarm stands before all badges."""
    assert line(obj).startswith(expected)


def test_a_small_card_stays_small_and_has_the_sparkline_alone():
    """Under 3.5 KB; the picture has a text for whoever does not see it."""
    html = tnp.card(torch.randn(3, 4, generator=torch.Generator().manual_seed(0))).html
    assert len(html) < 3500
    (uri, alt), *others = re.findall(r'<img src="data:image/png;base64,([^"]+)" alt="([^"]+)"', html)
    assert not others
    assert alt.startswith("histogram of 12 from ")
    image = Image.open(io.BytesIO(base64.b64decode(uri)))
    assert (image.mode, image.size) == ("P", (64, 16))


def test_options_turn_it_off():
    """The line, its pictures, or what is too large."""
    assert "mean" not in tnp.card(GRID, stats="off").text
    assert "<img" not in tnp.card(GRID, stats="text").html
    assert "mean" in tnp.card(GRID, stats="text").html
    assert "mean" not in tnp.card(GRID, max_read_nbytes=47).text
    assert "mean" in tnp.card(GRID, max_read_nbytes=48).text


def test_what_is_tiny_has_no_line():
    """A row of badges with one short array says it all."""
    assert "mean" not in tnp.card(torch.arange(3.0)).text
    assert "mean" not in tnp.card(torch.arange(10.0), style="line").text
    assert "mean" in tnp.card(GRID, style="line").text


def test_without_block_characters_the_figures_stay(monkeypatch):
    """Where the output cannot encode them."""

    class Ascii(io.StringIO):
        encoding = "ascii"

    monkeypatch.setattr(sys, "stdout", Ascii())
    assert line(GRID) == "mean 5.5 ± 3.45 · 0 … 11 · 1 zero"


def test_nothing_is_computed_unasked_where_nobody_may_read():
    """Meta tensors and empty ones have no line, and no error."""
    assert "mean" not in tnp.card(torch.zeros(3, 4, device="meta")).text
    assert "mean" not in tnp.card(torch.zeros(0, 4)).text


def test_integers_that_come_equally_often_are_drawn_equally_high():
    """Few as many of them: no bar stands for one, and the next one for two."""
    for times in (1, 1000):
        bars = sparkline_of(tnp.stats(torch.arange(10).repeat(times)))
        assert bars.count("█") == 10
        assert set(bars) == {"█", " "}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 3, 3, 1, 1, 0, 7, 7], "all of 4 values: 3 ×3, 1 ×2, 7 ×2, 0 ×1 · 0 … 7"),
        ([-1] * 5 + list(range(6)) * 3, "all of 7 values: -1 ×5, 0 ×3, 1 ×3, 2 ×3, … · -1 … 5"),
        (list(range(8)), "mean 3.5"),
        (list(range(17)) * 2, "mean 8"),
    ],
)
def test_a_few_integers_are_counted(values, expected):
    """Labels have no mean; numbers that hardly repeat have no counts."""
    assert line(torch.tensor([values] * 1).t()).startswith(expected)

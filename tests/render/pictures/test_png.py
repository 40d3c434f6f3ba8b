"""Pictures by their decoded pixels: what was planted is there, in its colour, on any page."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tensornp.core.values.pictures import heatmap as heatmaps
from tensornp.core.values.pictures.heatmap import FINITE, Limits
from tensornp.core.values.stats.distribution import Histogram
from tensornp.render.pictures import palette
from tensornp.render.pictures.palette import heatmap_alt, legend_text, sparkline_text
from tensornp.render.pictures.png import heatmap_png, histogram_png, magnification, size_of

CLEAR = (0, 0, 0, 0)
MARKS = {np.nan: palette.NAN, np.inf: palette.POSINF, -np.inf: palette.NEGINF}


def heatmap_of(plane, **options):
    plane = np.asarray(plane)
    return heatmaps.heatmap_of(plane.shape, lambda rows, columns: plane[rows][:, columns], **options)


def even(counts):
    return Histogram(np.array(counts), np.arange(len(counts) + 1.0), "all elements")


def decoded(png):
    return np.array(Image.open(io.BytesIO(png)).convert("RGBA"))


def colours_in(pixels):
    return {tuple(int(part) for part in pixel) for pixel in pixels.reshape(-1, 4)}


@pytest.mark.slow
@pytest.mark.parametrize("planted", list(MARKS), ids=str)
@pytest.mark.parametrize("side", [3, 20, 1000])
def test_what_was_planted_has_its_colour_at_its_place_and_nowhere_else(side, planted):
    """Also where its pixel is drawn with several."""
    plane = np.random.default_rng(0).normal(size=(side, side))
    at = side // 3, side // 2
    plane[at] = planted
    heatmap = heatmap_of(plane)
    pixels = decoded(heatmap_png(heatmap))
    times, _ = magnification(heatmap.flags.shape)
    top, left = (times * (i // step) for i, step in zip(at, heatmap.cell, strict=True))
    marked = pixels[top : top + times, left : left + times].copy()
    assert colours_in(marked) == {(*MARKS[planted], 255)}
    pixels[top : top + times, left : left + times] = 0
    assert (*MARKS[planted], 255) not in colours_in(pixels)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40, unique=True))
def test_a_greater_value_never_has_a_lower_colour(values):
    """In the order of the scale; what lies beyond has the colours of the two ends, carried on."""
    heatmap = heatmap_of([values])
    found = heatmap.limits
    pixels = decoded(heatmap_png(heatmap))[0, :: magnification(heatmap.flags.shape)[1], :3]
    signed = heatmap.is_signed
    below, above = palette.BEYOND_DIVERGING if signed else palette.BEYOND_SEQUENTIAL
    scale = [below, *palette.scale(palette.DIVERGING if signed else palette.SEQUENTIAL), above]
    steps = [scale.index(tuple(int(part) for part in pixels[i])) for i in np.argsort(values)]
    assert steps == sorted(steps)
    assert steps.count(0) == found.num_below
    assert steps.count(len(scale) - 1) == found.num_above


def test_all_of_one_value_and_nothing_finite_have_a_picture_too():
    """No division by zero."""
    for plane in ([[3.0, 3.0]], [[np.nan, np.nan]], [[0.0]], [[-1.7e308, 1.7e308]]):
        heatmap = heatmap_of(plane)
        assert decoded(heatmap_png(heatmap)).shape[:2] == size_of(heatmap)[::-1]
    empty = heatmap_of(np.zeros((0, 5)))
    assert colours_in(decoded(heatmap_png(empty))) == {CLEAR}


@pytest.mark.parametrize("shape", [(1, 1), (1, 5000), (5000, 1), (7, 9), (192, 192)])
def test_a_picture_is_neither_too_thin_to_see_nor_too_large(shape):
    """At least 16 and at most 256 pixels of a page, but for one that is long and thin, which is drawn no smaller."""
    heatmap = heatmap_of(np.zeros(shape))
    width, height = size_of(heatmap)
    assert (height, width) == decoded(heatmap_png(heatmap)).shape[:2]
    assert min(width, height) >= 16
    assert max(width, height) <= 256


def test_pictures_have_a_palette_and_are_small():
    """A histogram is about 160 bytes; a heat map of noise is smaller than its numbers."""
    counts = np.histogram(np.random.default_rng(0).normal(size=10_000), 64)[0]
    histogram = histogram_png(even(counts))
    image = Image.open(io.BytesIO(histogram))
    assert (image.mode, image.size, image.info["transparency"]) == ("P", (64, 16), 0)
    assert len(histogram) < 180
    heatmap = heatmap_of(np.random.default_rng(0).normal(size=(192, 192)))
    png = heatmap_png(heatmap)
    assert Image.open(io.BytesIO(png)).mode == "P"
    assert len(png) < 30_000


def test_the_legend_has_the_limits_what_lies_beyond_and_what_a_pixel_covers():
    """In numbers; the alternative text has all of it."""
    plane = np.linspace(-1, 1, 400 * 400).reshape(400, 400)
    plane[7, 8], plane[100, 100], plane[300, 5], plane[200, 200] = np.nan, np.inf, -np.inf, 50
    heatmap = heatmap_of(plane)
    finite = heatmap.values[heatmap.flags == FINITE]
    found = Limits(-0.5, 0.5, int((finite < -0.5).sum()), int((finite > 0.5).sum()))
    vars(heatmap)["limits"] = found
    legend = legend_text(heatmap)
    assert legend.startswith("blue -0.5 · grey 0 · orange 0.5 · ")
    assert f"{found.num_above:,} pixels above (darkest brown)" in legend
    for said in ("1 pixel with NaN (violet)", "1 pixel with +Inf (cyan)", "1 pixel with −Inf (black)"):
        assert said in legend
    assert legend.endswith("a pixel is the element farthest from 0 of up to 3 × 3")
    assert heatmap_alt(heatmap) == "heat map of 400 × 400 elements"
    small = heatmap_of([[1.0, 2.0]])
    assert legend_text(small) == "dark blue 1 … yellow 2"
    same = heatmap_of([[2.0, 2.0]])
    assert legend_text(same) == "all 2"


@given(st.lists(st.integers(0, 10**20), max_size=40))
def test_a_sparkline_has_a_bar_for_each_count_and_a_space_for_none(counts):
    """The greatest is a full block, and no bar is lower than that of a smaller count."""
    bars = sparkline_text(counts)
    assert len(bars) == len(counts)
    assert [bar == " " for bar in bars] == [count == 0 for count in counts]
    ordered = [bar for _, bar in sorted(zip(counts, bars, strict=True))]
    assert ordered == sorted(ordered)
    assert not any(counts) or ordered[-1] == "█"

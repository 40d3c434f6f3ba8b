"""Every picture of a histogram, measured: what is symmetric is drawn symmetric, and nothing has a comb."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
import torch
from PIL import Image

import tensornp as tnp
from tensornp.render.pictures.png import histogram_png
from tensornp.render.pictures.stats_line import HEIGHT, WIDTH, line_of, sparkline_of

BLOCKS = " ▁▂▃▄▅▆▇█"


def heights_of(png):
    """Return how high each column of a PNG is, without its base line."""
    return (np.array(Image.open(io.BytesIO(png)).convert("RGBA"))[:-1, :, 3] > 0).sum(axis=0)


def centre_of(heights):
    """Return where the centre of mass of columns lies, between 0 and 1."""
    places = (np.arange(len(heights)) + 0.5) / len(heights)
    return float((places * heights).sum() / np.sum(heights))


@pytest.mark.parametrize("count", [12, 50, 256, 300, 900, 5000])
def test_what_is_symmetric_is_drawn_symmetric(count):
    """On a card, in text, in the tree of weights and in a figure: in the middle, and to both ends."""
    half = np.random.default_rng(count).standard_normal(count // 2)
    values = torch.from_numpy(np.concatenate([half, -half])).float()
    stats = tnp.stats(values)
    html = tnp.card(values.view(2, -1)).html
    (on_card,) = re.findall(r'<img src="data:image/png;base64,([^"]+)"', html)
    _, histogram = line_of(stats)
    assert histogram is not None
    for picture in (base64.b64decode(on_card), histogram_png(histogram, WIDTH, HEIGHT)):
        heights = heights_of(picture)
        assert len(heights) == 64
        assert abs(centre_of(heights) - 0.5) < 1.5 / 64
        assert heights[0] and heights[-1]
    bars = sparkline_of(stats)
    assert abs(centre_of([BLOCKS.index(bar) for bar in bars]) - 0.5) < 1 / len(bars)
    assert " " not in (bars[0], bars[-1])
    drawn = tnp.plot(stats).axes[0].patches[0].get_data()
    middles = (drawn.edges[1:] + drawn.edges[:-1]) / 2
    assert abs((middles * drawn.values).sum() / drawn.values.sum()) < 0.02 * float(values.max())


@pytest.mark.parametrize(
    ("values", "centre"),
    [
        (np.full(7, 3.0), 0.5),
        (np.linspace(-1, 1, 99) * 1.7e308, 0.5),
        (np.append(np.full(500, 1.001), np.nextafter(np.float32(1), 0)).astype(np.float32), 0.98),
    ],
)
def test_odd_ranges_are_drawn_where_their_values_are(values, centre):
    """One value, a range that no float has, and nearly all at one end."""
    for num_bins in (2, 33, 64):
        stats = tnp.stats(values)
        found = stats.distribution.histogram(float(stats.min), float(stats.max), num_bins)
        assert found.cells(24).sum() == pytest.approx(len(values))
        assert abs(centre_of(heights_of(histogram_png(found, 64, 1025))) - centre) <= 0.5 / num_bins + 0.01


@pytest.mark.parametrize("spread", [1e-3, 1e-2, 0.1, 0.2])
@pytest.mark.parametrize("centre", [1.0, 0.51, -3.0, 100.0])
def test_many_around_a_centre_have_no_comb_and_quantiles_as_exact_as_is_said(centre, spread):
    """Where bins are about as wide as keys: one hill, with no dip in it, whose counts are NumPy's."""
    values = (centre * (1 + spread * np.random.default_rng(0).standard_normal(100_000))).astype(np.float32)
    stats = tnp.stats(values)
    assert stats.distribution.accuracy == "values ± 0.4 %"
    shares = np.linspace(0.001, 0.999, 201)
    assert stats.quantile(shares) == pytest.approx(np.quantile(values.astype(np.float64), shares), rel=0.005)
    assert np.array_equal(stats.histogram.counts, np.histogram(values, stats.histogram.edges)[0])
    cells = stats.histogram.cells(64)
    hill = np.minimum(np.maximum.accumulate(cells), np.maximum.accumulate(cells[::-1])[::-1])
    assert (hill - cells).max() <= 0.02 * cells.max()

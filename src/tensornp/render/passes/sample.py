"""A sample of what calls gave as a small histogram: in a text block characters, on a page a picture."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from tensornp.core.values.stats.distribution import Histogram
from tensornp.passes.records import Figures
from tensornp.render.layout.table import Drawn
from tensornp.render.pictures.legend import sparkline_text
from tensornp.render.pictures.png import histogram_png, img_html
from tensornp.render.pictures.stats_line import histogram_alt

_NUM_BARS, _MAX_BINS = 8, 32
_WIDTH, _HEIGHT = 48, 14
_FEW = 4
_MAX_SAMPLES = 16
"""Calls, at even distances, of which samples are counted."""


def sample_cell(figures: Sequence[Figures], samples: Sequence[tuple[float, ...]]) -> str:
    """Return the histogram of samples between the least and the greatest of all.

    Empty of few or equal values.
    """
    histogram = histogram_of(figures, samples)
    if histogram is None:
        return ""
    text = sparkline_text(histogram.cells(_NUM_BARS).tolist(), getattr(sys.stdout, "encoding", None) or "utf-8")
    png = histogram_png(histogram, _WIDTH, _HEIGHT)
    return Drawn(text, img_html(png, histogram_alt(histogram), _WIDTH, _HEIGHT))


def histogram_of(figures: Sequence[Figures], samples: Sequence[tuple[float, ...]]) -> Histogram | None:
    """Return how samples lie between the least and the greatest of all; None of few or equal values."""
    values = [value for sample in samples[:: math.ceil(len(samples) / _MAX_SAMPLES) or 1] for value in sample]
    low, high = min((one.min for one in figures), default=math.nan), max((one.max for one in figures), default=math.nan)
    if len(values) < _FEW or not low < high or not math.isfinite(high - low):
        return None
    num_bins = min(_MAX_BINS, round(2 * math.sqrt(len(values))))
    counts, edges = np.histogram(np.clip(values, low, high), num_bins, (low, high))
    return Histogram(counts, edges, f"sample of {len(values):,}")

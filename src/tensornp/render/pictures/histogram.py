"""A histogram by itself: as text, and as a picture in static HTML."""

from __future__ import annotations

from html import escape

from tensornp.core.values.stats.histogram import Histogram
from tensornp.render.layout.style import SMALL_TEXT, WIDE
from tensornp.render.pictures.png import histogram_png, img_html
from tensornp.render.pictures.stats_line import histogram_alt

_WIDTH, _HEIGHT = 256, 64


def histogram_text(histogram: Histogram) -> str:
    """Return how many elements were counted, between which values, and where most of them are."""
    return histogram_alt(histogram)


def histogram_html(histogram: Histogram) -> str:
    """Return the picture, over the same words."""
    said = histogram_alt(histogram)
    picture = img_html(histogram_png(histogram, _WIDTH, _HEIGHT), said, _WIDTH, _HEIGHT)
    return f'<div class="tensornp" style="{WIDE}">{picture}<div style="{SMALL_TEXT}">{escape(said)}</div></div>'

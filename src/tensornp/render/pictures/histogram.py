"""A histogram by itself: in words, and in a page as a picture."""

from __future__ import annotations

from tensornp.core.values.stats.distribution import Histogram
from tensornp.render.layout.document import Document, Lines, Pictures
from tensornp.render.pictures.png import histogram_png, img_html
from tensornp.render.pictures.stats_line import histogram_alt

_WIDTH, _HEIGHT = 256, 64


def histogram_document(histogram: Histogram) -> Document:
    """Return how many elements were counted, between which values, and where most of them are.

    A page has a picture.
    """
    said = histogram_alt(histogram)
    # Nothing stands for the picture but the line under it.
    picture = Pictures(lambda: img_html(histogram_png(histogram, _WIDTH, _HEIGHT), "", _WIDTH, _HEIGHT))
    return Document((picture, Lines((said,))))

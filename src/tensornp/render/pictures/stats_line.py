"""The figures of a tensor in one line, with a histogram in block characters or as a picture."""

from __future__ import annotations

import math
import re
from html import escape
from typing import TYPE_CHECKING

from tensornp.core.lowlevel.text import counted
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.values.stats.distribution import Histogram
from tensornp.core.values.stats.record import ALL, TensorStats, alarms_of, not_finite
from tensornp.render.layout.style import FIGURES
from tensornp.render.pictures.palette import sparkline_text
from tensornp.render.pictures.png import histogram_png, img_html

if TYPE_CHECKING:
    from tensornp.core.tensor.facts import TensorInfo

NUM_BARS = 24
"""Block characters of a histogram in text."""
WIDTH, HEIGHT = 64, 16
_SMALL = re.compile(r"-?[\d.]+e-\d+")
"""A number in which a page would break a line."""
_MAX_VALUES, _MAX_COUNTED = 16, 4
"""Different integers that are counted instead of averaged, and the most frequent ones that are shown."""


def glance_text(value: float | int) -> str:
    """Return an integer whole, and a float in three digits, or whole if it is shorter so: 1999, not 2e+03."""
    if isinstance(value, int):
        # As a float, it would lose digits above 2**53.
        return str(value)
    return f"{value:.0f}" if 999.5 <= abs(value) < 99_999.5 else f"{value:.3g}"


def number_text(value: float | int) -> str:
    """Return an integer whole, and a float in four digits."""
    return f"{value}" if isinstance(value, int) else f"{value:.4g}"


@never_compiled
def stats_line_text(stats: TensorStats, info: TensorInfo | None = None) -> str:
    """Return the line, with a histogram where the output can encode one."""
    said = " · ".join(_words(stats, info))
    bars = "" if _is_bool(info) else sparkline_of(stats).rstrip()
    return "  ".join(filter(None, [said, bars]))


@never_compiled
def stats_line_html(stats: TensorStats, info: TensorInfo | None = None, *, has_picture: bool = True) -> str:
    """Return the line as static HTML."""
    words = _words(stats, info)
    if not words:
        return ""
    histogram = told_histogram(stats, WIDTH) if has_picture and not _is_bool(info) else None
    image = f"{histogram_img(histogram)}&nbsp; " if histogram is not None else ""
    said = _SMALL.sub(r'<span style="white-space:nowrap">\g<0></span>', escape(" · ".join(words)))
    return f'<span style="{FIGURES}">{image}{said}</span>'


def histogram_img(histogram: Histogram, width: int = WIDTH, height: int = HEIGHT) -> str:
    return img_html(histogram_png(histogram, width, height), histogram_alt(histogram), width, height)


def line_of(stats: TensorStats) -> tuple[tuple[str, ...], Histogram | None]:
    """Return the words of the line, and the histogram of its picture."""
    return (*_words(stats, None), *(one.text for one in alarms_of(stats))), told_histogram(stats, WIDTH)


def _words(stats: TensorStats, info: TensorInfo | None) -> list[str]:
    """Return the figures in a few words each, and their scope; alarming values have a badge instead."""
    of, words = "modulus: " if stats.is_complex else "", []
    if stats.min is None:
        pass
    elif _is_bool(info):
        words = [f"{stats.count - stats.zeros:,} of {stats.count:,} True"]
    elif stats.min == stats.max:
        words = [f"{of}{'' if stats.finite == stats.count else 'finite: '}all {glance_text(stats.min)}"]
    elif few := _few_values(stats):
        words = [few, f"{stats.min} … {stats.max}"]
    else:
        ends = f"{glance_text(stats.min)} … {glance_text(stats.max)}"
        zeros = [counted(stats.zeros, "zero")] if stats.zeros else []
        words = [f"{of}mean {glance_text(stats.mean)} ± {glance_text(stats.std)}", ends, *zeros]
    words += [one.text for one in not_finite(stats) if not one.is_alarm]
    words += [stats.scope] if stats.scope != ALL else []
    if stats.distribution is not None and stats.distribution.one_in > 1:
        words.append(f"histogram {stats.distribution.scope}")
    return words


def _few_values(stats: TensorStats) -> str:
    """Return the counts of a few integers, ``all of 2 values: 0 ×5, 7 ×4``; else an empty text."""
    known = stats.distribution
    if not isinstance(stats.min, int) or known is None or not known.is_exact or known.one_in > 1:
        return ""
    num = len(known.numbers)
    if num > _MAX_VALUES or stats.count < 2 * num:
        return ""
    most = (-known.counts).argsort(kind="stable")[:_MAX_COUNTED]
    told = [f"{known.numbers[i]:.0f} ×{known.counts[i]:,}" for i in most]
    return f"all of {num} values: {', '.join([*told, *['…'] * (num > _MAX_COUNTED)])}"


def _is_bool(info: TensorInfo | None) -> bool:
    return info is not None and name_of(info.dtype) == "bool"


def sparkline_of(stats: TensorStats) -> str:
    """Return the histogram in block characters; empty without one, or where the output cannot encode them."""
    histogram = told_histogram(stats, NUM_BARS)
    if histogram is None:
        return ""
    cells = histogram.cells(_num_told(stats, int(histogram.counts.sum()), NUM_BARS))
    return sparkline_text(cells.tolist())


def told_histogram(stats: TensorStats, num_bins: int) -> Histogram | None:
    """Return the histogram in at most so many bins, fewer of few numbers; None for none or equal ones."""
    num_seen = stats.distribution.num_seen if stats.distribution is not None else 0
    if stats.distribution is None or stats.min is None or not num_seen:
        return None
    num_told = _num_told(stats, num_seen, num_bins)
    histogram = stats.distribution.histogram(float(stats.min), float(stats.max), num_told)
    return histogram if len(histogram.counts) > 1 else None


def _num_told(stats: TensorStats, count: int, most: int) -> int:
    """Return the number of bins: with few numbers, many bins would show each one."""
    if isinstance(stats.min, int) and stats.max - stats.min < most:
        # Each integer has a bin of its own, where fewer bins would hold one or two.
        return most
    return min(most, max(4, round(2 * math.sqrt(count))))


def histogram_alt(histogram: Histogram) -> str:
    low, high = (f"{histogram.edges[i]:.4g}" for i in (0, -1))
    at = int(histogram.counts.argmax())
    most = f"most, {int(histogram.counts[at]):,}, from {histogram.edges[at]:.4g} to {histogram.edges[at + 1]:.4g}"
    return f"histogram of {int(histogram.counts.sum()):,} from {low} to {high} ({histogram.scope}): {most}"

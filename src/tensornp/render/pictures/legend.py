"""Legends, alternative texts, and histograms in block characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensornp.core.lowlevel.text import counted, format_number
from tensornp.core.values.pictures.heatmap import NAN, NEGINF, POSINF, Heatmap, Limits
from tensornp.render.pictures.palette import NAMES

_BLOCKS = " ▁▂▃▄▅▆▇█"


def legend_text(heatmap: Heatmap, limits: Limits) -> str:
    """Return the legend of a heat map in one line: the scale, values beyond it, the elements of a pixel."""
    of = "modulus: " if heatmap.is_modulus else ""
    over = NAMES["above" if limits.centre is not None else "over"]
    beyond = ((limits.num_below, "below", NAMES["below"]), (limits.num_above, "above", over))
    said = [f"{counted(count, 'pixel')} {word} ({colour})" for count, word, colour in beyond if count]
    for flag, word, name in ((NAN, "NaN", "nan"), (POSINF, "+Inf", "posinf"), (NEGINF, "−Inf", "neginf")):
        said += [f"{counted(count, 'pixel')} with {word} ({NAMES[name]})"] if (count := heatmap.count(flag)) else []
    cover = "a pixel is an element"
    if heatmap.elements_per_pixel > 1:
        rows, columns = (min(pair) for pair in zip(heatmap.cell, heatmap.shape, strict=True))
        cover = f"a pixel is the element farthest from 0 of up to {rows:,} × {columns:,}"
    return " · ".join([of + _scale(heatmap, limits), *said, cover])


def heatmap_alt(heatmap: Heatmap) -> str:
    """Return the alternative text of a heat map, which stands above its legend."""
    rows, columns = heatmap.shape
    return f"heat map of {rows:,} × {columns:,} elements"


def _scale(heatmap: Heatmap, limits: Limits) -> str:
    if np.isnan(limits.low):
        # One that is not finite takes the pixel of many that are.
        return "no finite value" if heatmap.elements_per_pixel <= 1 else "no pixel of finite values alone"
    low, high = format_number(limits.low), format_number(limits.high)
    if limits.low == limits.high:
        return f"all {low}" if not limits.num_beyond else f"{low}"
    if limits.centre is None:
        return f"{NAMES['least']} {low} … {NAMES['greatest']} {high}"
    centre = format_number(limits.centre)
    return f"{NAMES['low']} {low} · {NAMES['centre']} {centre} · {NAMES['high']} {high}"


def sparkline_text(counts: Sequence[float], encoding: str = "utf-8") -> str:
    """Return a bar for each count, a space for none; nothing if `encoding` has no bars."""
    try:
        _BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ""
    greatest = max(counts, default=0)
    return "".join([_BLOCKS[math.ceil(8 * (count / greatest))] if count else " " for count in counts])

"""The colours of pictures, told apart by the colour-blind too, and the words for them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from tensornp.core.lowlevel.text import counted, format_number
from tensornp.core.values.pictures import heatmap as flags
from tensornp.core.values.pictures.heatmap import Heatmap

Colour = tuple[int, int, int]
"""Red, green and blue, from 0 to 255."""

NUM_STEPS = 63
"""Colours of a scale: an odd number, so that the centre has one."""
DIVERGING: Sequence[Colour] = ((0, 74, 156), (76, 135, 194), (200, 199, 196), (219, 145, 82), (177, 82, 24))
"""From below the centre, blue, over a grey that neither a white nor a dark page swallows, to above it, orange."""
SEQUENTIAL: Sequence[Colour] = (
    (26, 60, 112), (59, 80, 110), (87, 93, 109), (112, 113, 115), (138, 134, 121), (167, 156, 119), (201, 180, 104),
    (239, 204, 77),
)  # fmt: skip
"""From dark blue to yellow: a part of cividis (Nuñez, Anderton and Renslow 2018), whose lightness grows evenly."""
BEYOND_DIVERGING: tuple[Colour, Colour] = ((0, 22, 66), (84, 26, 0))
BEYOND_SEQUENTIAL: tuple[Colour, Colour] = ((0, 12, 48), (255, 250, 205))
"""Colours of values below and above the limits of a scale: its ends, carried on."""
NAN: Colour = (196, 32, 255)
POSINF: Colour = (110, 255, 255)
NEGINF: Colour = (0, 0, 0)
BARS: Colour = (128, 128, 128)
"""Colour of a histogram: a contrast of at least 3 to 1 to a white page and to a dark one."""
ODD_BARS: Colour = (217, 119, 6)
"""Colour of a bar that stands for NaN or Inf."""
LABEL: Colour = (118, 118, 118)
"""Colour of letters within a picture, readable on either page."""
_BLOCKS = " ▁▂▃▄▅▆▇█"


def scale(anchors: Sequence[Colour]) -> list[Colour]:
    """Return the colours of a scale, evenly spread along straight lines between the anchors."""
    at = np.linspace(0, len(anchors) - 1, NUM_STEPS)
    channels = [np.rint(np.interp(at, range(len(anchors)), channel)) for channel in zip(*anchors, strict=True)]
    return [(int(red), int(green), int(blue)) for red, green, blue in zip(*channels, strict=True)]


def legend_text(heatmap: Heatmap) -> str:
    """Return the legend of a heat map in one line: the scale, values beyond it, the elements of a pixel."""
    of = "modulus: " if heatmap.is_modulus else ""
    over, limits = "darkest brown" if heatmap.is_signed else "palest yellow", heatmap.limits
    beyond = ((limits.num_below, "below", "darkest blue"), (limits.num_above, "above", over))
    said = [f"{counted(count, 'pixel')} {word} ({colour})" for count, word, colour in beyond if count]
    for flag, word in ((flags.NAN, "NaN (violet)"), (flags.POSINF, "+Inf (cyan)"), (flags.NEGINF, "−Inf (black)")):
        said += [f"{counted(count, 'pixel')} with {word}"] if (count := heatmap.count(flag)) else []
    if heatmap.elements_per_pixel > 1:
        rows, columns = (min(pair) for pair in zip(heatmap.cell, heatmap.shape, strict=True))
        said.append(f"a pixel is the element farthest from 0 of up to {rows:,} × {columns:,}")
    return " · ".join([of + _scale(heatmap), *said])


def heatmap_alt(heatmap: Heatmap) -> str:
    """Return the alternative text of a heat map, which stands above its legend."""
    rows, columns = heatmap.shape
    return f"heat map of {rows:,} × {columns:,} elements"


def _scale(heatmap: Heatmap) -> str:
    limits = heatmap.limits
    if np.isnan(limits.low):
        # One that is not finite takes the pixel of many that are.
        return "no finite value" if heatmap.elements_per_pixel <= 1 else "no pixel of finite values alone"
    low, high = format_number(limits.low), format_number(limits.high)
    if limits.low == limits.high:
        return f"{low}" if limits.num_below or limits.num_above else f"all {low}"
    return f"blue {low} · grey 0 · orange {high}" if heatmap.is_signed else f"dark blue {low} … yellow {high}"


def sparkline_text(counts: Sequence[float]) -> str:
    """Return a bar for each count, a space for none; nothing if the output cannot encode bars."""
    try:
        _BLOCKS.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return ""
    greatest = max(counts, default=0)
    return "".join([_BLOCKS[math.ceil(8 * (count / greatest))] if count else " " for count in counts])

"""Legends of a window: its colours and its overview."""

from __future__ import annotations

import math

from tensornp.core.values.pictures.heatmap import NAN as NAN_PIXEL
from tensornp.core.values.pictures.heatmap import NEGINF, POSINF
from tensornp.core.values.pictures.planes import PlaneMap
from tensornp.core.values.shown.window_values import HIDDEN, NAN, NEGATIVE_INF, POSITIVE_INF, Seen
from tensornp.render.pictures.palette import DIVERGING, NAMES, SEQUENTIAL, Colour
from tensornp.render.pictures.palette import NAN as NAN_COLOUR
from tensornp.render.pictures.palette import NEGINF as NEGINF_COLOUR
from tensornp.render.pictures.palette import POSINF as POSINF_COLOUR

_PIXELS = (
    (NAN_PIXEL, "nan", NAN_COLOUR, "NaN"), (POSINF, "posinf", POSINF_COLOUR, "Inf"),
    (NEGINF, "neginf", NEGINF_COLOUR, "−Inf"),
)  # fmt: skip
_SPECIAL = {"NaN": (NAN,), "Inf": (POSITIVE_INF, NEGATIVE_INF), "hidden": (HIDDEN,)}


def legend_of(seen: Seen, *, is_complex: bool = False) -> str:
    """Return the scale, and what has no place on it.

    ``−0.12 … 0.12 of this window · 2 NaN``.
    """
    counts = {name: sum(shade in shades for shade in seen.shades) for name, shades in _SPECIAL.items()}
    low, high = seen.scale
    limit = max(-low, high)
    if not seen.shades:
        scale = "no elements"
    elif limit:
        ends = f"{_short(-limit if low < 0 else 0.0)} … {_short(limit if high > 0 else 0.0)} of this window"
        scale = f"|x| {ends}" if is_complex else ends
    elif sum(counts.values()) < len(seen.shades):
        scale = "only 0 in this window"
    else:
        scale = "no finite value in this window"
    return " · ".join([scale, *(f"{count:,} {name}" for name, count in counts.items() if count)])


def overview_words(overview: PlaneMap) -> list[tuple[str, Colour]]:
    """Return the colours of an overview by name, each with what it stands for."""
    heatmap, limits = overview.heatmap, overview.limits
    is_signed = limits.centre is not None
    names, scale = (("low", "high"), DIVERGING) if is_signed else (("least", "greatest"), SEQUENTIAL)
    ends = zip(names, (limits.low, limits.high), (scale[0], scale[-1]), strict=True)
    words = [(f"{NAMES[name]} {_short(value)}", colour) for name, value, colour in ends if not math.isnan(value)]
    if limits.low == limits.high and not limits.num_beyond:
        # They have the colour of the middle.
        value = _short(limits.low)
        words = [(f"{value} in every pixel", scale[len(scale) // 2])]
    found = [pixel for pixel in _PIXELS if heatmap.count(pixel[0])]
    return words + [(f"{NAMES[name]} {word}", colour) for _, name, colour, word in found]


def _short(number: float) -> str:
    return f"{number:.3g}".replace("-", "−")

"""The colours of pictures.

Two scales, and those of what stands on neither, told apart by the colour-blind too.
"""

from __future__ import annotations

from collections.abc import Sequence

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
ON_NAN: Colour = (255, 255, 255)
ON_POSINF: Colour = (0, 110, 130)
ON_NEGINF: Colour = (70, 70, 70)
"""The second colours of the patterns: of the three that stand on no scale."""
BARS: Colour = (128, 128, 128)
"""Colour of a histogram: a contrast of at least 3 to 1 to a white page and to a dark one."""
LABEL: Colour = (118, 118, 118)
"""Colour of letters within a picture, readable on either page."""
NAMES = {
    "nan": "violet", "posinf": "cyan", "neginf": "black", "low": "blue", "centre": "grey", "high": "orange",
    "least": "dark blue", "greatest": "yellow", "below": "darkest blue", "above": "darkest brown",
    "over": "palest yellow",
}  # fmt: skip
"""Names of the colours in legends."""


def scale(anchors: Sequence[Colour], num_steps: int = NUM_STEPS) -> list[Colour]:
    """Return so many colours, evenly spread along straight lines between the anchors."""
    found: list[Colour] = []
    for step in range(num_steps):
        position = step * (len(anchors) - 1) / max(1, num_steps - 1)
        at = min(int(position), len(anchors) - 2)
        share = position - at
        red, green, blue = (round(a + (b - a) * share) for a, b in zip(anchors[at], anchors[at + 1], strict=True))
        found.append((red, green, blue))
    return found

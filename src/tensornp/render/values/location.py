"""Where some elements of a tensor are: as text, and as static HTML."""

from __future__ import annotations

from html import escape

from tensornp.core.values.find.locate import Location
from tensornp.render.layout.style import HEADING, SMALL_TEXT, WIDE

_IN_ITS_LINE = 3
"""Coordinates that `str` of a location has."""


def location_text(place: Location) -> str:
    """Return how many there are and where, in a line, and under it all coordinates that are kept."""
    return "\n".join(filter(None, [str(place), _kept(place)]))


def location_html(place: Location) -> str:
    """Return the same as static HTML."""
    kept = f'<div style="{SMALL_TEXT}">{escape(_kept(place))}</div>' if _kept(place) else ""
    return f'<div class="tensornp" style="{WIDE}"><div style="{HEADING}">{escape(str(place))}</div>{kept}</div>'


def _kept(place: Location) -> str:
    if len(place.indices) <= _IN_ITS_LINE:
        return ""
    return f"the first {len(place.indices)}: {', '.join(str(list(index)) for index in place.indices)}"

"""The locations of elements."""

from __future__ import annotations

from tensornp.core.values.locate import Location
from tensornp.render.layout.document import Document, Heading, Lines

_IN_ITS_LINE = 3
"""Coordinates that `str` of a location has."""


def location_document(place: Location) -> Document:
    """Return how many there are and where, in a line, and under it all coordinates that are kept."""
    return Document((Heading(str(place)), Lines((_kept(place),))))


def _kept(place: Location) -> str:
    if len(place.indices) <= _IN_ITS_LINE:
        return ""
    return f"the first {len(place.indices)}: {', '.join(str(list(index)) for index in place.indices)}"

"""A line of a program, with the file that it stands in."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from tensornp.models.names.quoted import cut
from tensornp.passes.records import SourceLine
from tensornp.render.layout.document import Both
from tensornp.render.layout.style import QUIET, SOURCE

_MAX_TEXT, _MAX_PLACE = 400, 120


def source_part(source: SourceLine | None) -> Both:
    """Return where a line stands, and how it reads; of none, nothing."""
    if source is None:
        return Both()
    place, text = cut(str(replace(source, text="")), _MAX_PLACE), cut(source.text, _MAX_TEXT)
    # The file of a cell is one of this kernel alone.
    whole = escape(cut(f"{source.cell or source.file}:{source.line}", _MAX_PLACE))
    beside = f'<span style="{QUIET}">{escape(place)}</span>'
    html = f'<div style="{SOURCE}" title="{whole}">{beside}{f"&ensp;{escape(text)}" if text else ""}</div>'
    return Both(f"    {place}  {text}".rstrip(), html)

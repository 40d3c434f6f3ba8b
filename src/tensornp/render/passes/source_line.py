"""A line of a program, with the file that it stands in."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from tensornp.models.names.quoted import cut
from tensornp.passes.records import SourceLine
from tensornp.render.layout.document import Both
from tensornp.render.layout.style import QUIET, SOURCE

_MAX_TEXT, _MAX_PLACE = 400, 120
_FIRST_CLAUSE = re.compile(r"(`[^`]*`|;(?! )|[^;])*")


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


def clauses_of(sentence: str) -> tuple[str, str]:
    """Return the first clause of a sentence, and what stands from the semicolon on that ends it.

    None of a line's.
    """
    match = _FIRST_CLAUSE.match(sentence)
    end = match.end() if match is not None else len(sentence)
    return sentence[:end], sentence[end:]

"""Print a document to a terminal: bold headings, yellow alarms, pale headings of columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from tensornp.render.layout.document import Document, Part
from tensornp.render.layout.table import Table, table_text

_BOLD, _PALE, _YELLOW = "1", "2", "33"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; one that was closed before the start is None."""
    return stream is not None and stream.isatty()


def is_coloured(when: str) -> bool:
    """Return whether colours are wanted: "always", "never", or "auto" (see no-color.org)."""
    is_wanted = is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    return is_wanted if when == "auto" else when == "always"


def coloured(document: Document) -> str:
    """Return the text of a document in colours."""
    return "\n".join(_lines(document.parts))


def _lines(parts: Sequence[Part | Table]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Table):
            headings, *lines = table_text(part).split("\n")
            yield from [_styled(headings, _PALE)] * bool(headings)
            pairs = zip(lines, part.rows, strict=False)
            yield from (_styled(line, _YELLOW if row.alarm else "") for line, row in pairs)
        elif part.parts:
            yield from _lines(part.parts)
        elif part.text:
            style = {"heading": _BOLD, "alarm": _YELLOW}.get(part.tone, "")
            yield from (_styled(line, style) for line in part.text.split("\n"))


def _styled(line: str, style: str) -> str:
    """Return a line in a style; pagers begin each line without one."""
    return f"\x1b[{style}m{line}\x1b[0m" if style and line else line

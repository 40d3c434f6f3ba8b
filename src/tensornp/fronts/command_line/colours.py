"""A document as a terminal shows it: headings bold, alarms yellow, the headings of columns pale."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from tensornp.render.layout.document import Alarm, Beside, Document, Group, Heading, Part
from tensornp.render.layout.table import Table, table_text

_BOLD, _PALE, _YELLOW = "1", "2", "33"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether somebody sees what is written; a stream that was closed before the start is None."""
    return stream is not None and stream.isatty()


def is_coloured(when: str) -> bool:
    """Return whether colours are wanted.

    "always", "never", or "auto", of a terminal that has them (no-color.org).
    """
    if when != "auto":
        return when == "always"
    has_colours = os.environ.get("TERM") != "dumb" and (os.name != "nt" or "WT_SESSION" in os.environ)
    return has_colours and not os.environ.get("NO_COLOR") and is_terminal(sys.stdout)


def coloured(document: Document) -> str:
    """Return the text of a document in colours."""
    return "\n".join(_lines(document.parts))


def _lines(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Group | Beside):
            yield from _lines(part.parts)
        elif isinstance(part, Table):
            yield from _rows(part) if part.rows else ()
        elif part.text:
            style = _BOLD if isinstance(part, Heading) else _YELLOW if isinstance(part, Alarm) else ""
            yield from (_styled(line, style) for line in part.text.split("\n"))


def _rows(table: Table) -> Iterator[str]:
    headings, *lines = table_text(table).split("\n")
    yield _styled(headings, _PALE)
    yield from (_styled(line, _YELLOW if row.alarm else "") for line, row in zip(lines, table.rows, strict=True))


def _styled(line: str, style: str) -> str:
    """Return a line in a style, which ends with it: pagers begin each line without one."""
    return f"\x1b[{style}m{line}\x1b[0m" if style and line else line

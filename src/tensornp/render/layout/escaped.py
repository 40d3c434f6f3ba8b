"""Text as HTML, in which what is written from right to left moves nothing that stands beside it."""

from __future__ import annotations

import re
from html import escape

_LETTERS = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]+"
_RIGHT_TO_LEFT = re.compile(f"{_LETTERS}(?: {_LETTERS})*")
"""Words of Hebrew, Arabic and others beside these (the blocks of Unicode that are kept for such scripts)."""


def escaped(text: str) -> str:
    """Return a text as HTML; the parts of a name keep their order, and so do names in a list."""
    html = escape(text)
    return html if html.isascii() else _RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", html)

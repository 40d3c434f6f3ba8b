"""Text that a user's program has made, as one line that a terminal and a page can show."""

from __future__ import annotations


def legible(text: str, keep: str = "") -> str:
    """Return `text` with what cannot be printed as escapes: ESC, newlines, bidirectional overrides, lone surrogates.

    A name with such in it could clear a terminal, or be read for another one. The characters in `keep` stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)

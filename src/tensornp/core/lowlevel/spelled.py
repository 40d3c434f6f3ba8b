"""Glyphs that an output cannot encode, or fonts of a paper lack, spelled in characters that every one has."""

from __future__ import annotations

import codecs
import functools
import sys
from collections.abc import Callable
from typing import Any

SPELLED = "tensornp-spelled"
"""The name of an error handler: of what an encoding lacks, glyphs of ours are spelled, and the others escaped."""
_GLYPHS = {
    "·": "|", "…": "...", "‖": "|", "Δ": "d", "≤": "<=", "≥": ">=", "−": "-", "×": "x", "±": "+-", "≈": "~",
    "→": "->", "∞": "inf", "²": "^2", "–": "-", "└": "`", "├": "|", "│": "|", "─": "-",
    **dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True)), "µ": "u", "↔": "<->",
}  # fmt: skip
"""What views say beside names and values."""
_BEYOND_LATIN = {ord(glyph): plain for glyph, plain in _GLYPHS.items() if glyph > "\xff"}


class _Output:
    """What is known of where texts go: `is_for_paper` is so of a file that no page shows, as LaTeX may read it."""

    is_for_paper = False


OUTPUT = _Output()


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_GLYPHS.get(char) or _escaped(char) for char in lacking), error.end


def _escaped(char: str) -> str:
    return char.encode("ascii", "backslashreplace").decode()


codecs.register_error(SPELLED, _spell)


def for_paper(text: str) -> str:
    """Return text in which glyphs of ours are spelled that common fonts of LaTeX lack; names and values stay."""
    return text.translate(_BEYOND_LATIN)


def for_output(text: str) -> str:
    """Return text as the standard output can encode it, which is any but where it is not UTF-8."""
    if OUTPUT.is_for_paper:
        text = for_paper(text)
    if text.isascii():
        return text
    try:
        encoding = getattr(sys.stdout, "encoding", None)
        return text.encode(encoding, SPELLED).decode(encoding) if type(encoding) is str else text
    except Exception:
        # What stands in for it may raise anything.
        return text


def spelled(said: Callable[[Any], str]) -> Callable[[Any], str]:
    """Have what an object says of itself be text that the standard output can encode."""

    @functools.wraps(said)
    def method(self: Any) -> str:
        return for_output(said(self))

    return method

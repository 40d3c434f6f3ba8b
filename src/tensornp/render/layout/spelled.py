"""Glyphs that an output cannot encode, spelled in characters that every one has."""

from __future__ import annotations

import codecs

SPELLED = "tensornp-spelled"
"""The name of an error handler: of what an encoding lacks, glyphs of ours are spelled, and the others escaped."""
_GLYPHS = {
    "·": "|", "…": "...", "‖": "|", "Δ": "d", "≤": "<=", "≥": ">=", "−": "-", "×": "x", "±": "+-", "≈": "~",
    "→": "->", "∞": "inf", "²": "^2", "–": "-", "└": "`", "├": "|", "│": "|", "─": "-",
}  # fmt: skip
"""What views say beside names and values."""


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_GLYPHS.get(char) or _escaped(char) for char in lacking), error.end


def _escaped(char: str) -> str:
    return char.encode("ascii", "backslashreplace").decode()


codecs.register_error(SPELLED, _spell)

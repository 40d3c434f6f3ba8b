"""Inline styles of the static HTML, without text colours, so that one form serves every theme and sanitizer."""

from __future__ import annotations

from typing import Literal

Tone = Literal["plain", "shared", "copied", "grad", "refused"]

_RGB: dict[Tone, str] = {
    "plain": "128,128,128",
    "shared": "22,163,74",
    "copied": "217,119,6",
    "grad": "124,58,237",
    "refused": "220,38,38",
}
_BADGE = (
    "display:inline-block;padding:1px 8px;border-radius:9px;font-size:85%;line-height:1.5;white-space:nowrap;"
    "background-color:rgba({},{})"
)
CARD = "padding:4px 0 2px;line-height:1.9"
WIDE = f"overflow:auto;{CARD}"
SMALL = "font-size:90%;line-height:1.5"
ARRAY = "margin:6px 0 4px;padding:0;background-color:transparent;overflow:auto;font-family:monospace;line-height:1.3"
CODE = "padding:0;background-color:transparent"
TABLE = "border-collapse:collapse;margin:4px 0"
CELL = "padding:1px 12px 1px 0;text-align:left;white-space:nowrap;font-size:90%"
GROUP = "border-top:1px solid rgba(128,128,128,.25)"


def badge_style(tone: Tone) -> str:
    """Return the style of a badge of one tone."""
    return _BADGE.format(_RGB[tone], ".13" if tone == "plain" else ".2")

"""Inline styles of the static HTML, without text colours, so that one form serves every theme and sanitizer."""

from __future__ import annotations

from typing import Literal

Tone = Literal["plain", "shared", "grad", "warned", "refused"]

_RGB: dict[Tone, str] = {
    "plain": "128,128,128",
    "shared": "22,163,74",
    "grad": "124,58,237",
    "warned": "217,119,6",
    "refused": "220,38,38",
}
_BADGE = (
    "display:inline-block;padding:1px 8px;border-radius:9px;font-size:85%;line-height:1.5;white-space:nowrap;"
    "background-color:rgba({},{})"
)
CARD = "padding:3px 0 1px;line-height:1.8"
ROW = f"display:flex;flex-wrap:wrap;align-items:baseline;gap:0 12px;{CARD}"
WIDE = f"overflow:auto;{CARD}"
SMALL_TEXT = "font-size:90%;line-height:1.6"
HEADING = "line-height:1.5"
SMALL = "flex-basis:100%;font-size:90%;line-height:1.5"
_LINE_HEIGHT = 1.31
_FONT = "font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:93%;line-height:1.31"
"""JupyterLab's own for text, of which no variable survives its sanitizer."""
_ARRAY = f"padding:0;background-color:transparent;white-space:pre;overflow:auto;{_FONT}"
ROW_ARRAY = f"margin:0;{_ARRAY}"
REFUSAL = f"margin:4px 0;{_FONT}"
STATS_LINE = "font-size:90%;line-height:1.5"
WARNED_TEXT = "padding:0 4px;border-radius:4px;background-color:rgba(217,119,6,.2)"
PICTURES = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:8px 24px;margin:6px 0"
PICTURE = "flex:1 1 240px;max-width:340px"
CODE = "padding:0;background-color:transparent"
TABLE = "border-collapse:collapse;margin:4px 0"
_CELL = "padding:1px 12px 1px 0;white-space:nowrap;font-size:90%"
CELL = f"{_CELL};text-align:left"
WRAPPED_CELL = CELL.replace("nowrap", "normal")
RIGHT_CELL = f"{_CELL};text-align:right;font-variant-numeric:tabular-nums"
GROUP = "border-top:1px solid rgba(128,128,128,.25)"


PRINTED = (
    "<style>@media print{.tensornp,.tensornp pre{overflow:visible!important;max-height:none!important}"
    ".tensornp td{white-space:normal!important}}</style>"
)
"""Paper does not scroll. Where a sanitizer drops it, nothing else is lost."""


def badge_style(tone: Tone) -> str:
    """Return the style of a badge of one tone."""
    return _BADGE.format(_RGB[tone], ".13" if tone == "plain" else ".2")


def array_style(max_height: int) -> str:
    """Return the style of an array of which so many lines are seen at once, all of them for 0."""
    return f"margin:4px 0 3px;{_ARRAY};max-height:{height_of(max_height)}"


def height_of(max_height: int) -> str:
    """Return how high so many lines are, and half a line that says that there is more; any height for 0."""
    return f"{(max_height + 0.5) * _LINE_HEIGHT:.1f}em" if max_height else "none"

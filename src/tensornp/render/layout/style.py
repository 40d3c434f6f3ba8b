"""Inline styles of the static HTML; they work in every theme and sanitizer."""

from __future__ import annotations

from typing import Literal

Tone = Literal["plain", "alarm"]
"""Ordinary facts are grey; colour is for what is unusual."""

ALARM = "background-color:rgba(217,119,6,.28);font-weight:600"
_TONES: dict[Tone, str] = {"plain": "background-color:rgba(128,128,128,.14)", "alarm": ALARM}
_BADGE = (
    # If a system forces its own colours, the border alone shows the edges.
    "display:inline-block;padding:0 6px;border:1px solid transparent;border-radius:4px;font-size:85%;line-height:1.5;"
    # Paper keeps the grounds that tell them apart.
    "print-color-adjust:exact;{}"
)
BADGES = {tone: _BADGE.format(style) for tone, style in _TONES.items()}
"""The style of a badge of each tone."""
CARD = "padding:1px 0;line-height:1.5"
ALARMS = "display:grid;grid-template-columns:auto 1fr;align-items:baseline;gap:0 4px"
HEAD = "display:flex;flex-wrap:wrap;align-items:baseline;gap:0 12px"
WIDE = f"overflow:auto;{CARD}"
SMALL_TEXT = "font-size:90%;line-height:1.6"
HEADING = "line-height:1.5"
HANGING = "padding-left:1em;text-indent:-1em"
"""Indent of the later lines of a text that a narrow page breaks."""
SMALL = "flex-basis:100%;font-size:90%;line-height:1.5"
_FONT = "font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:93%;line-height:1.31"
"""JupyterLab's own for text, of which no variable survives its sanitizer."""
_ARRAY = f"padding:0;background-color:transparent;white-space:pre;overflow:auto;{_FONT}"
ARRAY, ROW_ARRAY = f"margin:1px 0 0;{_ARRAY}", f"margin:0;{_ARRAY}"
SOURCE = f"margin:2px 0 4px;padding:0 8px;border-left:2px solid rgba(217,119,6,.8);{_FONT}"
REFUSAL = f"margin:4px 0;{_FONT}"
FIGURES = "font-size:90%;line-height:1.5"
ALARM_TEXT = f"padding:0 3px;border-radius:4px;print-color-adjust:exact;{ALARM}"
QUIET_ROW, QUIET = "opacity:.62", "opacity:.72"
POINTER = "cursor:pointer"
FOLD = f"{POINTER};opacity:.8"
LINES_FOLD = f"font-size:90%;line-height:1.5;{FOLD}"
BESIDE = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:0 28px"
AXIS = "display:flex;font-size:80%;line-height:1.3;font-variant-numeric:tabular-nums"
END = "margin-left:auto"
PICTURE = "flex:1 1 240px;max-width:340px"
CODE = "padding:0;background-color:transparent"
TABLE = "border-collapse:collapse;margin:4px 0"
_CELL = "padding:1px 12px 1px 0;white-space:nowrap;font-size:90%"
CELL = f"{_CELL};text-align:left"
WRAPPED_CELL = CELL.replace("nowrap", "normal")
WORDS_CELL = f"{WRAPPED_CELL};min-width:9em"
NAME_CELL = f"{WRAPPED_CELL};min-width:13em"
RIGHT_CELL = f"{_CELL};text-align:right;font-variant-numeric:tabular-nums"
GROUP = "border-top:1px solid rgba(128,128,128,.25)"


PRINTED = (
    "<style>@media print{.tensornp,.tensornp pre{overflow:visible!important}"
    ".tensornp tbody>tr>*{white-space:normal!important}.tensornp tr,.tensornp img{break-inside:avoid}"
    ".tensornp details:not([open],.tensornp-more)>summary::after{content:' (folded)'}"
    ".tensornp-more>summary{display:none}.tensornp pre>span{opacity:1!important}"
    ".tensornp-more::details-content{content-visibility:visible!important;block-size:auto!important}}</style>"
)
"""Paper does not scroll or unfold: an array goes on. Where a sanitizer drops it, nothing else is lost."""

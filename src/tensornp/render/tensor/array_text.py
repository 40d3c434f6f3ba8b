"""The text of an array as static HTML: folded, with NaN marked."""

from __future__ import annotations

import re
from html import escape

from tensornp.core.lowlevel.text import counted
from tensornp.render.layout.style import ALARM, LINES_FOLD, PRINTED, ROW_ARRAY, array_style

MIN_FOLDED = 3
"""Lines beyond the height that are worth a fold."""
MAX_MARKED = 200
"""Values that are marked: of an array that is full of NaN, its badge says so."""
MAX_UNSCROLLED_WIDTH = 80
"""Characters of a line that fit into a page of 800 pixels."""
MAX_UNSCROLLED = 200
"""Lines behind the fold of which all are seen at once."""
_NAN, _INF = (re.compile(rf"(?<![A-Za-z_])-?{word}j?(?!\w)") for word in ("nan", "inf"))


def folded_text(text: str, max_height: int) -> tuple[list[str], list[str], str]:
    """Return the visible lines, those behind a fold, and their number in words.

    A text with a little more than `max_height` lines is whole; of a longer one, seven tenths of them are visible.
    """
    lines = text.split("\n")
    beyond = lines[max_height:] if max_height else []
    if sum([bool(line.strip()) for line in beyond]) < MIN_FOLDED:
        return lines, [], ""
    num_seen = max(1, round(0.7 * max_height))
    num_more = sum([bool(line.strip()) for line in lines[num_seen:]])
    return lines[:num_seen], lines[num_seen:], counted(num_more, "more line")


def array_html(text: str, max_height: int, *, is_row: bool = False, is_mask: bool = False) -> str:
    """Fold the text of an array with more than that many lines; 0 shows all.

    In a row of badges it has no margin; of a mask, infinities are not marked.
    """
    lines, folded, more = folded_text(text, max_height)
    words = [word for word in (_NAN, *(() if is_mask else (_INF,))) if len(word.findall(text)) <= MAX_MARKED]
    # An area that scrolls can be reached by keyboard.
    is_wide = max(map(len, text.splitlines()), default=0) > MAX_UNSCROLLED_WIDTH
    focusable = ' tabindex="0"' if is_wide else ""
    pre = f'<pre{focusable} style="{ROW_ARRAY if is_row else array_style()}">{_marked(lines, words)}</pre>'
    if not folded:
        return pre
    bound = 0
    if len(folded) > MAX_UNSCROLLED:
        bound, focusable = MAX_UNSCROLLED, ' tabindex="0"'
    rest = f'<pre{focusable} style="{array_style(bound)}">{_marked(folded, words)}</pre>'
    fold = f'<details class="tensornp-more"><summary style="{LINES_FOLD}">{more}</summary>{rest}</details>'
    return pre + fold + PRINTED


def _marked(lines: list[str], words: list[re.Pattern[str]]) -> str:
    """Return lines as HTML with some words highlighted."""
    html = escape("\n".join(lines))
    for word in words:
        html = word.sub(rf'<span style="{ALARM}">\g<0></span>', html)
    return html

"""How far a reading has come, as text and as HTML."""

from __future__ import annotations

from html import escape

from tensornp.core.lowlevel.units import format_nbytes
from tensornp.render.layout.style import SMALL_TEXT


def progress_text(what: str, done: int, total: int, speed: float) -> str:
    """Return the share and, where the bytes a second are known, about how long the rest takes."""
    said = [f"{what}: {done / max(total, 1):.0%} of {format_nbytes(total)}"]
    if speed > 0:
        said += [f"{format_nbytes(round(speed))}/s", f"about {(total - done) / speed:,.0f} s left"]
    return " · ".join(said)


def progress_html(what: str, done: int, total: int, speed: float) -> str:
    """Return the same with a bar."""
    text = escape(progress_text(what, done, total, speed))
    bar = f'<progress max="{max(total, 1)}" value="{done}" aria-label="{escape(what)}"></progress>'
    return f'<div class="tensornp" dir="ltr" style="{SMALL_TEXT}">{bar} {text}</div>'

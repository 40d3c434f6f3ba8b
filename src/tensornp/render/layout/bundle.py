"""One display as text and as HTML, in which text takes the place of HTML that cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.render.layout.style import CARD, array_style


def bundle(what: str, text: Callable[[], str], html: Callable[[], str]) -> dict[str, str]:
    """Return what two functions make, by MIME type; they may raise. Where no text can be made, `what` it is stands."""
    said = first_that_works(f"the text of {what}", text, lambda reason: f"{what} (not shown: {reason})")
    return {
        "text/plain": said,
        "text/html": first_that_works(f"the HTML of {what}", html, lambda _: preformatted(said)),
    }


def preformatted(text: str, anchor: str = "") -> str:
    """Return text as static HTML; `anchor` is the class by which a live toggle finds a card."""
    pre = f'<pre style="{array_style()}">{escape(text)}</pre>'
    return f'<div class="tensornp {escape(anchor)}" dir="ltr" style="{CARD}">{pre}</div>'

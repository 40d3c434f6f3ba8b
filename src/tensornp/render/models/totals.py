"""The totals of an explorer, or how they are spread over ranks: its numbers, as text and as static HTML."""

from __future__ import annotations

from tensornp.models.explorer import Spread, Totals
from tensornp.render.layout.bundle import preformatted


def totals_text(totals: Totals | Spread) -> str:
    """Return a line for each number, by the name of its attribute."""
    return "\n".join(f"{name}: {number:,}" for name, number in totals._asdict().items())


def totals_html(totals: Totals | Spread) -> str:
    """Return the same as static HTML."""
    return preformatted(totals_text(totals))

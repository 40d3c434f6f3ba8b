"""The totals of an explorer, or how they are spread over ranks: its numbers, as text and as static HTML."""

from __future__ import annotations

from tensornp.models.explorer import Spread, Totals
from tensornp.render.layout.document import Document, printed


def totals_document(totals: Totals | Spread) -> Document:
    """Return a line for each number, by the name of its attribute."""
    text = "\n".join(f"{name}: {number:,}" for name, number in totals._asdict().items())
    return printed(text)

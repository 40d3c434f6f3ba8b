"""The card of a NumPy array: as plain text, and as static HTML."""

from __future__ import annotations

from tensornp.core.lowlevel.units import format_nbytes
from tensornp.core.summary.array import ArraySummary
from tensornp.core.summary.options import DisplayOptions
from tensornp.render.layout.style import CARD
from tensornp.render.tensor.badges import Badge, badge_html
from tensornp.render.tensor.card import values_html


def array_text(summary: ArraySummary) -> str:
    """Return the badges in one line over the array, or over the reason why it is not printed."""
    return "\n".join([" | ".join(badge.text for badge in _badges(summary)), summary.text or summary.refusal])


def array_html(summary: ArraySummary, options: DisplayOptions) -> str:
    """Return the same as static HTML."""
    badges = " ".join(map(badge_html, _badges(summary)))
    values = values_html(summary.text, summary.refusal, options.max_height)
    return f'<div class="tensornp" style="{CARD}"><div>{badges}</div>{values}</div>'


def _badges(summary: ArraySummary) -> list[Badge]:
    return [
        Badge("shape", str(summary.shape), f"A {summary.type_name} of that shape."),
        Badge("dtype", summary.dtype, "The dtype of its elements."),
        Badge("bytes", format_nbytes(summary.nbytes), f"Its elements take {summary.nbytes:,} bytes."),
        Badge("order", f"{summary.order}, strides {summary.strides}", "Bytes from one index of each axis to the next."),
        Badge("writeable", "writeable" if summary.is_writeable else "read-only", "Whether NumPy lets it be written."),
        Badge("memory", "who else sees it: not known", "tnp.aliases(array) looks for what shares its memory."),
    ]

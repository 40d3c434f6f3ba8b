"""The card of a NumPy array: as plain text, and as static HTML."""

from __future__ import annotations

from tensornp.core.lowlevel.text import format_nbytes
from tensornp.core.summary.container import ArraySummary
from tensornp.core.summary.options import DisplayOptions
from tensornp.render.layout.document import Both, Document, Lines
from tensornp.render.layout.style import CARD
from tensornp.render.tensor.badges import Badge, badges_line
from tensornp.render.tensor.card import values_html


def array_document(summary: ArraySummary, options: DisplayOptions) -> Document:
    """Return the badges in one line over the array, or over the reason why it is not printed."""
    badges = _badges(summary)
    values = values_html(summary.text, summary.refusal, options.max_height)
    note = [Lines((f"({summary.note})",))] if summary.note else []
    return Document((badges_line(badges), Both(summary.text or summary.refusal, values), *note), CARD)


def _badges(summary: ArraySummary) -> list[Badge]:
    return [
        Badge("shape", str(summary.shape), f"A {summary.type_name} of that shape."),
        Badge("dtype", summary.dtype, "The dtype of its elements."),
        Badge("bytes", format_nbytes(summary.nbytes), f"Its elements take {summary.nbytes:,} bytes."),
        Badge("order", f"{summary.order}, strides {summary.strides}", "Bytes from one index of each axis to the next."),
        Badge("writeable", "writeable" if summary.is_writeable else "read-only", "Whether NumPy lets it be written."),
        Badge("memory", "who else sees it: not known", "tnp.aliases(array) looks for what shares its memory."),
    ]

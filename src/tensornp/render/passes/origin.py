"""The origin of the first NaN or infinity: a sentence, and the source line."""

from __future__ import annotations

from tensornp.models.names.quoted import cut
from tensornp.passes.records import Origin
from tensornp.render.layout.document import Alarm, Document, Lines
from tensornp.render.passes.source_line import clauses_of, source_part

_MAX_TEXT = 400


def origin_document(origin: Origin) -> Document:
    """Return the sentence, the line, and how to get at the call."""
    source = source_part(origin.source if origin.is_exact else None)
    said = f"its call is number {origin.call:,}: run[{origin.call}]" if origin.call is not None else ""
    return Document((Alarm(*clauses_of(cut(origin.sentence, _MAX_TEXT))), source, Lines((said,))))

"""Which weights differ between ranks that should have the same."""

from __future__ import annotations

from itertools import islice

from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.processes.merged import Drift
from tensornp.render.layout.document import Document, Heading, Lines
from tensornp.render.layout.table import Table, TableRow
from tensornp.render.layout.words import listed
from tensornp.render.ranks.weights import silent_lines

_MAX_ROWS, _MAX_LINES = 100, 10


def drift_document(drift: Drift) -> Document:
    """Return how many differ over which, and who has not answered."""
    rows = [TableRow((cut(name, MAX_SHOWN), said)) for name, said in islice(drift.items(), _MAX_ROWS)]
    more = f"… and {len(drift) - _MAX_ROWS:,} more differ" if len(drift) > _MAX_ROWS else ""
    names = [cut(name, MAX_SHOWN) for name in drift.not_compared]
    unread = f"not compared, as the bits cannot be read: {listed(names, _MAX_LINES)}" if names else ""
    return Document(
        (
            Heading(f"{cut(drift.expression, MAX_SHOWN)} · {drift.told}"),
            Lines((unread,)),
            silent_lines(drift.answers.silent_lines),
            Table(("name", "what"), tuple(rows)),
            Lines((more,)),
        )
    )

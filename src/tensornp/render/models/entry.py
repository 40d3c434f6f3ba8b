"""One weight of an explorer: its facts over what NumPy prints."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tensornp.core.lowlevel.text import counted, legible
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.shown.preview import Preview
from tensornp.models.entries.entry import COMPUTED, WeightEntry, shape_text
from tensornp.models.module_view import EntrySummary
from tensornp.models.names.quoted import MAX_TOLD, cut
from tensornp.render.layout.document import Document, Part
from tensornp.render.layout.style import HEADING
from tensornp.render.layout.table import Table, TableRow, name_html
from tensornp.render.tensor.card import values_html

MAX_SHOWN = 10
"""Names that a weight is tied to which are listed."""


def entry_document(summary: EntrySummary, options: DisplayOptions) -> Document:
    """Return the name over the facts, and under them what NumPy prints, or why nothing is printed."""
    entry, seen = summary.entry, summary.preview
    # An empty name could not be seen.
    name = cut(entry.name, MAX_TOLD) or "''"
    facts = [(label, cut(said, MAX_TOLD)) for label, said in _facts(entry) if said and label != "no values"]
    facts += [("code", legible(entry.code))] if entry.code else []
    heading = Part(name, f'<div style="{HEADING}"><b>{name_html(name)}</b></div>')
    values = Part(seen.text or summary.refusal, values_html(seen.text, summary.refusal, options.max_height))
    note = Part(f"({seen.note})", f"<small>{escape(seen.note)}</small>") if seen.note else Part()
    return Document((heading, Table(("fact", "value"), tuple(map(TableRow, facts))), values, note))


def panel_html(entry: WeightEntry, more: str, seen: Preview) -> str:
    """Return the facts of a weight, the line `more` and the printed array for a panel."""
    facts = "".join(
        f'<span class="tensornp-fact"><span class="tensornp-label">{label} </span>'
        f"<bdi>{name_html(legible(said))}</bdi></span>"
        for label, said in _facts(entry)
        if said
    )
    # Keys scroll a wide array.
    scrolls = 'tabindex="0" role="region" aria-label="Array"'
    array = f'<pre class="tensornp-array" {scrolls}>{escape(seen.text)}</pre>' if seen.text else ""
    line, note = (f'<div class="tensornp-said">{escape(text)}</div>' if text else "" for text in (more, seen.note))
    return f'<div class="tensornp-facts">{facts}</div>{line}{array}{note}'


def array_code(entry: WeightEntry, opened: str) -> str:
    """Return the expression of a weight's array by that of the explorer, empty where none reaches it."""
    if not entry.code:
        return ""
    if not entry.extents:
        return f'tnp.to_numpy({entry.code}, shard="local")' if entry._has_part else f"tnp.to_numpy({entry.code})"
    return f"{opened}[{entry.name!r}].to_numpy()"


def _facts(entry: WeightEntry) -> Iterator[tuple[str, str]]:
    yield "kind", entry.kind
    yield "shape", shape_text(entry.shape, entry.kind) or "not known yet"
    yield "dtype", entry.dtype
    elements = counted(entry.numel, "element")
    yield "bytes", f"{entry.nbytes:,} ({elements})" if entry.kind != COMPUTED else f"none are stored ({elements})"
    yield "where", entry.location
    yield "grad", {True: "requires grad", False: "frozen", None: ""}[entry._is_trained]
    more = len(entry.tied_to) - MAX_SHOWN
    yield "tied to", ", ".join([*entry.tied_to[:MAX_SHOWN], *([f"{more:,} more"] if more > 0 else [])])
    yield "note", entry.note
    yield "no values", "" if entry._has_part else entry.problem
    yield "wants to import", ", ".join(entry.wanted_imports)

"""Convert a weight to plain data that the page inserts as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel.text import legible
from tensornp.core.summary.stats import StatsSummary
from tensornp.core.values.shown.preview import Preview
from tensornp.core.values.shown.print_options import line_width
from tensornp.core.values.stats.fast import is_to_compile
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.entries.summary import preview_of
from tensornp.render.layout.words import cost_of_scan
from tensornp.render.models.entry import array_code, facts_of
from tensornp.render.pictures.legend import captioned_alt, legend_text
from tensornp.render.pictures.png import data_uri, heatmap_png, size_of
from tensornp.render.values.stats import stats_tables
from tensornp.widget.toggle_data import figures_data

_MIN_LINE = 20
"""Characters of a line that a number has in any page."""


def entry_data(entry: WeightEntry, opened: str, printoptions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts, expressions and NumPy text of a weight.

    Only the printed elements are read. `opened` is the expression of the explorer.
    """
    seen = preview_of(entry, printoptions) if entry._can_be_read else Preview("")
    return {
        "name": legible(entry.name),
        "facts": [[label, legible(said)] for label, said in facts_of(entry)],
        "numpy": array_code(entry, opened),
        "torch": entry.code,
        "text": seen.text,
        "note": seen.note,
        "cost": "computes it"
        if entry.kind == COMPUTED
        else cost_of_scan(entry.nbytes, compiles=is_to_compile(entry.nbytes)),
        "hasValues": entry._can_be_read and 0 not in (entry.shape or ()),
    }


def fitted(printoptions: Mapping[str, Any], width: int) -> dict[str, Any]:
    """Cap the line width of print options at `width` characters (0: no cap)."""
    if width <= 0:
        return dict(printoptions)
    return {**printoptions, "linewidth": min(line_width(printoptions), max(width, _MIN_LINE))}


def stats_data(summary: StatsSummary) -> dict[str, Any]:
    """Return all figures of one weight: the line, tables, and a heat map."""
    tables = [
        {"headings": list(table.headings), "rows": [list(row.cells) for row in table.rows]}
        for table in stats_tables(summary)
    ]
    return {
        "figures": figures_data(summary.stats, None, has_picture=True),
        "tables": tables,
        "heatmap": _heatmap(summary),
    }


def _heatmap(summary: StatsSummary) -> dict[str, Any]:
    picture = summary.picture
    if picture is None:
        return {}
    width, height = size_of(picture.heatmap)
    alt = captioned_alt(picture.heatmap)
    source = data_uri(heatmap_png(picture.heatmap, picture.limits))
    caption = " · ".join(filter(None, [picture.tiles.title, legend_text(picture.heatmap, picture.limits)]))
    return {"shown": {"src": source, "alt": alt, "width": width, "height": height}, "caption": caption}

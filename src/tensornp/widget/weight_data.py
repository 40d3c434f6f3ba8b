"""What the page shows of weights, as plain data that it puts in as text and never as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tensornp.core.lowlevel.legible import legible
from tensornp.core.lowlevel.units import counted, format_nbytes
from tensornp.core.summary.stats import StatsSummary
from tensornp.core.values.shown.preview import Preview
from tensornp.core.values.stats.histogram import Histogram
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.entries.summary import preview_of
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.models.outline.columns import FINDINGS, Column, cells_of, column_called, columns, figure_columns
from tensornp.models.outline.fold import Row
from tensornp.models.outline.outline import Line
from tensornp.models.outline.spreads import Spread, Spreads
from tensornp.models.scan.findings import QUIET_RANK
from tensornp.render.layout.words import cost_of_scan
from tensornp.render.models.entry import array_code, facts_of
from tensornp.render.pictures.legend import heatmap_alt, legend_text
from tensornp.render.pictures.png import data_uri, heatmap_png, histogram_png, size_of
from tensornp.render.pictures.stats_line import HEIGHT, WIDTH, histogram_alt
from tensornp.render.values.stats import stats_tables
from tensornp.widget.toggle_data import figures_data

NOT_FINITE = {"nan": "NaN", "inf": "infinities"}
"""What the navigator looks for, and how it is called."""


class Found(NamedTuple):
    """What a scan has found of a weight: how bad the worst finding is (0 is the worst), all, the figures, and bars.

    `words` are what is said of them, `figures` the numbers by their columns, and `goal` what is to be looked for among
    the values: "nan", "inf", or nothing.

    The picture of a histogram is made when its line is seen.
    """

    rank: int
    findings: tuple[str, ...]
    words: tuple[str, ...] = ()
    histogram: Histogram | None = None
    figures: Mapping[str, float] = MappingProxyType({})
    goal: str = ""

    @property
    def is_alarm(self) -> bool:
        """Whether a finding is more than what may be so on purpose, such as weights that are all 1."""
        return self.rank < QUIET_RANK

    @property
    def picture(self) -> dict[str, str]:
        """The histogram as a picture, with the text that stands for it; empty where there is none."""
        if self.histogram is None:
            return {}
        png = histogram_png(self.histogram, WIDTH, HEIGHT)
        return {"src": data_uri(png), "alt": histogram_alt(self.histogram)}


def column_data(column: Column, *, has_figures: bool) -> dict[str, Any]:
    """Return what the page has to know of a column."""
    return {
        "name": column.name, "heading": column.heading or column.name, "isRight": column.is_right,
        "isLargeFirst": column.has_large_first, "isSortable": column.is_sortable,
        "minWidth": column.min_width if has_figures else 0, "isFixed": column.name in ("name", FINDINGS),
    }  # fmt: skip


def choice_data(name: str, values: list[str]) -> dict[str, Any]:
    """Return the values among which one is chosen, and what the list of them is called."""
    label = next((column.label for column in columns() if column.name == name and column.label), name)
    return {"column": name, "label": label, "values": values}


def alarm_data(weights: Sequence[WeightEntry], found: Mapping[str, Found]) -> dict[str, Any]:
    """Return a sentence on weights that are not finite, NaN before infinity, and the first of them; else nothing."""
    for goal, what in NOT_FINITE.items():
        numbers = [i for i, one in enumerate(weights) if one.name in found and found[one.name].goal == goal]
        if numbers:
            name = cut(weights[numbers[0]].name, MAX_SHOWN)
            has = f"{counted(len(numbers), 'weight')} {'has' if len(numbers) == 1 else 'have'} {what}"
            return {"weight": numbers[0], "goal": goal, "text": f"{has}: {name}{', …' if len(numbers) > 1 else ''}"}
    return {}


def marked_column(sort: str) -> str:
    """Return the column that has marks: the one that lines are sorted by, where its figures are positive, else norm."""
    figure = column_called(sort).figure if sort else None
    return sort if figure is not None and not figure.has_sign else "norm"


def line_data(line: Line, found: Mapping[str, Found], spreads: Spreads | None, marked: str) -> dict[str, Any]:
    """Return one line of the tree; `marked` is the column that has a mark."""
    if line.weights:
        cells = cells_of(Row(line.label, line.weights, line.unlike))
    else:
        weights, nbytes = counted(line.sums.num_weights, "weight"), format_nbytes(line.sums.nbytes)
        told = {"name": legible(line.label), "shape": weights, "bytes": nbytes, "notes": legible(line.unlike)}
        cells = {column.name: told.get(column.name, "") for column in columns(with_scanned=False)}
    picture: dict[str, Any] = {}
    own = found.get(line.weights[0].name) if line.number >= 0 else None
    num_alarms = spreads.num_alarms(line.branch) if spreads is not None and line.branch >= 0 else 0
    if own is not None:
        cells["findings"], cells["figures"], picture = "; ".join(own.findings), " · ".join(own.words), own.picture
    elif num_alarms:
        cells["findings"] = f"{num_alarms:,} of {line.sums.num_weights:,} with findings"
    mark: tuple[float, float] | None = None
    for column, figure in figure_columns():
        spread = _spread(column, line, own, spreads)
        if spread is not None and spreads is not None:
            cells[column] = figure.text_of(*spread)
            mark = spreads.place(column, spread) if column == marked else mark
    return {
        "cells": cells, "branch": line.branch, "parent": line.parent, "level": line.level, "position": line.position,
        "size": line.size, "open": line.is_open, "number": line.number, "picture": picture, "mark": mark,
        "title": f"{counted(line.sums.numel, 'element')}, {counted(line.sums.nbytes, 'byte')}",
        "isAlarm": own.is_alarm if own is not None else bool(num_alarms), "goal": own.goal if own is not None else "",
    }  # fmt: skip


def _spread(column: str, line: Line, own: Found | None, spreads: Spreads | None) -> Spread | None:
    """Return between what a figure lies: that of one weight, or of all that are below a line."""
    if own is not None:
        value = own.figures.get(column)
        return None if value is None else Spread(value, value)
    return spreads.of(column, line.branch) if spreads is not None and line.branch >= 0 else None


def entry_data(entry: WeightEntry, opened: str, printoptions: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of one weight: facts, expressions, and what NumPy prints; reads the printed elements.

    `opened` is the expression of the explorer.
    """
    seen = preview_of(entry, printoptions) if not entry.problem else Preview("")
    return {
        "name": legible(entry.name),
        "facts": [[label, legible(said)] for label, said in facts_of(entry)],
        "numpy": array_code(entry, opened),
        "torch": entry.code,
        "text": seen.text,
        "note": seen.note,
        "cost": "computes it" if entry.kind == COMPUTED else cost_of_scan(entry.nbytes),
        "hasValues": not entry.problem and 0 not in (entry.shape or ()),
    }


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
    alt = heatmap_alt(picture.heatmap, picture.limits, picture.tiles.caption)
    source = data_uri(heatmap_png(picture.heatmap, picture.limits))
    caption = " · ".join(filter(None, [picture.tiles.caption, legend_text(picture.heatmap, picture.limits)]))
    return {"shown": {"src": source, "alt": alt, "width": width, "height": height}, "caption": caption}

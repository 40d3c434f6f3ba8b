"""Make the rows of the tree of weights, with the results of scans."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted, format_count, format_nbytes, legible
from tensornp.core.values.stats.distribution import Histogram
from tensornp.core.values.stats.record import NotFinite
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.models.outline.choose import (
    FOUND_STATE,
    INFINITY_STATE,
    NAN_STATE,
    NOT_FINITE_STATE,
    QUIET_STATE,
    UNREAD,
)
from tensornp.models.outline.columns import (
    FINDINGS,
    GRAD,
    GRADIENT,
    GRADIENT_RATIO,
    Column,
    cells_of,
    columns,
    figure_columns,
    shares_of,
)
from tensornp.models.outline.fold import Row
from tensornp.models.outline.outline import Line, Sums, part_of
from tensornp.models.outline.spreads import Spread, Spreads
from tensornp.models.scan.findings import ALARM_RANK, QUIET_RANK, UNRANKED, Finding, Kind, by_kind, kind_of
from tensornp.render.layout.table import Drawn
from tensornp.render.layout.tree import TreeColumn, TreeLink, TreeRow
from tensornp.render.pictures.png import histogram_png, img_html
from tensornp.render.pictures.stats_line import HEIGHT, WIDTH, histogram_alt

NOT_FINITE = {"nan": "NaN", "inf": "infinities"}
"""Goals of the navigator, and their names."""
EXTREMES = {"max |x|": "absmax", "min": "min", "max": "max"}
"""Further goals of the navigator by figure."""
_SIZES = {2**10: "1 KiB", 2**20: "1 MiB", 100 * 2**20: "100 MiB"}
_LAST_PART = re.compile(r"[\\/]")
_WIDTHS = {
    "name": 30, "elements": 9, "share": 6, "bytes": 13, "figures": 9, "zeros": 7, GRADIENT: 10, GRADIENT_RATIO: 14,
    FINDINGS: 20, "notes": 20,
} | dict.fromkeys(("norm", "mean", "std", "max |x|"), 8)  # fmt: skip
"""The least characters of columns whose texts change as rows are opened."""
_NARROW = ("name", "shape", "dtype", "norm")
_WIDE = ("share", "where", "mean", "std", "zeros", GRADIENT, GRADIENT_RATIO)
"""The columns that a narrow page has, and those that only a wide one has."""
_RIGHT = ("elements", "share", "bytes")
_MAX_SHAPE = 20


class Found(NamedTuple):
    """The results of a scan for one weight: findings, texts, histogram and numbers.

    The picture of a histogram is made when its line is visible. `lacks_gradient` is true if others have a gradient.
    """

    findings: tuple[Finding, ...]
    words: tuple[str, ...] = ()
    histogram: Histogram | None = None
    figures: Mapping[str, float] = MappingProxyType({})
    alarms: tuple[NotFinite, ...] = ()
    lacks_gradient: bool = False

    @property
    def rank(self) -> int:
        """Return the rank of the worst finding; 0 is the worst."""
        return min((one.rank for one in self.findings), default=UNRANKED)

    @property
    def goal(self) -> str:
        """Return the goal for a search in the values: "nan", "inf" or ``""``."""
        return self.alarms[0].goal if self.alarms else ""

    @property
    def alarm(self) -> str:
        """Return a short text on non-finite values, else on a non-finite gradient."""
        worst = next((one.text for one in self.findings if one.rank == self.rank < ALARM_RANK), "")
        return ", ".join(one.text for one in self.alarms) or worst


class OrderOf(NamedTuple):
    """The order and states of weights from the results of a scan."""

    found: Mapping[str, Found]

    def number(self, column: str, name: str) -> float | None:
        """Return the sort key of a weight: a statistic or the rank of its findings."""
        own = self.found.get(name)
        return None if own is None else own.rank if column == FINDINGS else own.figures.get(column)

    def worst(self, name: str) -> str:
        """Return the kind of the worst finding of a weight, or ``""``."""
        own = self.found.get(name)
        kind = kind_of(own.findings) if own is not None else None
        return kind.what if kind is not None else ""

    def states(self, name: str) -> tuple[str, ...]:
        """Return the states of a weight that a scan determines."""
        own = self.found.get(name)
        if own is None:
            return (UNREAD,)
        goals = {one.goal for one in own.alarms}
        is_in = {
            NOT_FINITE_STATE: own.rank < ALARM_RANK, NAN_STATE: "nan" in goals, INFINITY_STATE: "inf" in goals,
            FOUND_STATE: own.rank < QUIET_RANK, QUIET_STATE: QUIET_RANK <= own.rank < UNRANKED,
        }  # fmt: skip
        return tuple(state for state, is_so in is_in.items() if is_so)


class Told(NamedTuple):
    """The source of all rows: numbers of weights, scan results, extremes, and the fraction of all weights."""

    numbers: Mapping[str, int]
    found: Mapping[str, Found]
    spreads: Spreads | None
    share_of: Callable[[Sums], float]


def kinds_of(found: Mapping[str, Found]) -> dict[str, Kind]:
    """Return the worst finding by the name of its weight."""
    kinds = ((name, kind_of(one.findings)) for name, one in found.items())
    return {name: kind for name, kind in kinds if kind is not None}


def tree_column(column: Column, sort: str, max_shape: int) -> TreeColumn:
    """Return a column of the tree; the shapes have at most `max_shape` characters."""
    name = column.name
    return TreeColumn(
        name,
        "values" if name == "figures" else name,
        min(max_shape, _MAX_SHAPE) if name == "shape" else _WIDTHS.get(name, len(name)),
        is_right=column.figure is not None or name in _RIGHT,
        is_sortable=column.is_sortable,
        is_large_first=column.has_large_first,
        least_px=0 if name in (*_NARROW, sort) else 1200 if name in _WIDE else 700,
    )


def choice_data(name: str, values: list[str]) -> dict[str, Any]:
    """Return the values of a filter and the label of their list."""
    shown = {"shown": [_LAST_PART.split(value)[-1] for value in values]} if name == "where" else {}
    return {"column": name, "label": "place" if name == "where" else name, "values": values, **shown}


def size_choice() -> dict[str, Any]:
    """Return the least sizes among which one is chosen."""
    values = [str(nbytes) for nbytes in _SIZES]
    return {"column": "bytes", "label": "Size", "values": values, "shown": [f"≥ {n}" for n in _SIZES.values()]}


def findings_data(weights: Sequence[WeightEntry], found: Mapping[str, Found]) -> list[dict[str, Any]]:
    """Return the findings as sentences with their first weight, the worst first."""
    numbers = {one.name: number for number, one in enumerate(weights)}
    kinds = by_kind((name, found[name].findings) for name in numbers if name in found)
    return [
        {
            "text": kind.with_scope(len(names)), "what": kind.what,
            "isAlarm": kind.is_alarm, "more": len(names) - 1,
            "name": cut(names[0], MAX_SHOWN) or "''", "number": numbers[names[0]],
            "goal": found[names[0]].goal if kind.is_alarm else "",
        }
        for kind, names in kinds.items()
    ]  # fmt: skip


def note_data(text: str) -> list[dict[str, Any]]:
    """Return a note next to findings without a weight, nothing for an empty text."""
    return (
        [{"text": text, "what": "", "isAlarm": False, "more": 0, "name": "", "number": -1, "goal": ""}] if text else []
    )


def weight_row(line: Line, told: Told, *, is_open: bool) -> TreeRow:
    """Return the row of a line."""
    own = told.found.get(line.weights[0].name) if line.number >= 0 else None
    histogram = own.histogram if own is not None else None
    figures, titles = _figures(line, own, told, is_open=is_open)
    if line.num_alike > 1:
        titles["elements"] = f"{line.num_alike:,} × {line.sums.numel // line.num_alike:,}, {line.sums.numel:,} in all"
    cells = {**_cells(line, told), **_findings(line, own, told, is_open=is_open), **figures}
    if histogram is not None:
        picture = img_html(histogram_png(histogram, WIDTH, HEIGHT), histogram_alt(histogram), WIDTH, HEIGHT)
        cells["figures"] = Drawn(cells.get("figures", ""), picture)
    size = f"{counted(line.sums.numel, 'element')}, {counted(line.sums.nbytes, 'byte')}"
    goals = EXTREMES if line.number >= 0 else {}
    return TreeRow(
        line.id,
        line.level,
        cells["name"],
        cells,
        titles | {name: f"Go to the element of the {name} (m)" for name in goals if figures.get(name)},
        "\n".join(
            filter(None, (legible(line.weights[0].name if line.number >= 0 else line.label), size, cells["notes"]))
        ),
        beside=legible(line.class_name),
        link=_alarm(line, own, told, is_open=is_open),
        number=line.number,
        is_open=is_open if line.has_below else None,
        is_quiet=line.is_quiet,
        goals=goals,
    )


def _cells(line: Line, told: Told) -> dict[str, str]:
    """Return the texts of a line that need no scan by column."""
    shares = shares_of(line.sums.numel, told.share_of(line.sums), line.num_alike)
    if line.number >= 0:
        # One that is counted by another name has its elements, and is no share more.
        shares["elements"] = format_count(line.weights[0].numel)
    if line.weights:
        lacking = [one for one in line.weights if one.name in told.found and told.found[one.name].lacks_gradient]
        grad = {GRAD: "no .grad" if len(lacking) == len(line.weights) else "some no .grad"} if lacking else {}
        return cells_of(Row(line.label, line.weights, line.unlike)) | shares | grad
    weights, nbytes = counted(line.sums.num_weights, "weight"), format_nbytes(line.sums.nbytes)
    said = {"name": legible(line.label), "shape": weights, "bytes": nbytes, "notes": legible(line.unlike)}
    return {column.name: said.get(column.name, "") for column in columns(with_scanned=False)} | shares


def _findings(line: Line, own: Found | None, told: Told, *, is_open: bool) -> dict[str, str]:
    """Return the findings of a weight or below a closed line, except non-finite ones."""
    if own is not None:
        said = "; ".join(one.text for one in own.findings if one.rank >= ALARM_RANK)
        return {FINDINGS: said, "figures": " · ".join(own.words)}
    below = _below(line, told, is_open=is_open)
    return {FINDINGS: " · ".join(kind.with_scope(len(names)) for kind, names in below if not kind.is_alarm)}


def _below(line: Line, told: Told, *, is_open: bool) -> Iterable[tuple[Kind, list[str]]]:
    """Yield the findings below a closed line."""
    if told.spreads is not None and line.has_below and not is_open:
        yield from ((Kind(*kind), names) for kind, names in told.spreads.kinds(line.id))


def _alarm(line: Line, own: Found | None, told: Told, *, is_open: bool) -> TreeLink | None:
    """Return the alarm of a weight, or of the weights below a closed line."""
    if own is not None:
        return _led_to(own, line.number, own.alarm) if own.alarm else None
    names = next((names for kind, names in _below(line, told, is_open=is_open) if kind.is_alarm), [])
    if not names or told.spreads is None:
        return None
    first, every = told.found[names[0]], told.spreads.names(line.id)
    if len(names) == 1:
        part = legible(part_of(names[0], every[0], every[-1]))
        text = f"{first.alarm} in {part}" if first.goal else f"{part}: {first.alarm}"
    elif first.goal:
        text = f"{NOT_FINITE[first.goal]} in {len(names):,} of {counted(len(every), 'weight')}"
    else:
        text = f"{len(names):,} of {len(every):,} .grad not finite"
    return _led_to(first, told.numbers[names[0]], text)


def _led_to(found: Found, number: int, text: str) -> TreeLink:
    way = "show the values there" if found.goal else "show it"
    return TreeLink(text, f"{text}: {way} (n)", number, found.goal)


def _figures(line: Line, own: Found | None, told: Told, *, is_open: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Return the statistics of a weight or below a closed line, and titles, by column."""
    cells: dict[str, str] = {}
    titles: dict[str, str] = {}
    spreads: Mapping[str, Spread] = {}
    if own is not None:
        spreads = {column: Spread(value, value) for column, value in own.figures.items()}
    elif told.spreads is not None and line.has_below and not is_open:
        spreads = told.spreads.of(line.id)
    for column, figure in figure_columns():
        if (spread := spreads.get(column)) is not None:
            cells[column] = figure.text_of(*spread)
            titles |= {column: f"{column} {title}"} if (title := figure.title_of(*spread)) else {}
    return cells, titles

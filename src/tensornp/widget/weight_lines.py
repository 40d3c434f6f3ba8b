"""Convert a line of the tree of weights to plain data for the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted, format_count, format_nbytes, legible
from tensornp.core.values.stats.alarms import NotFinite
from tensornp.core.values.stats.distribution import Histogram, put_together
from tensornp.models.entries.entry import WeightEntry, shape_text
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
    at_a_glance,
    cells_of,
    column_called,
    columns,
    figure_columns,
    shares_of,
)
from tensornp.models.outline.fold import Row
from tensornp.models.outline.outline import Line, Outline, Sums, part_of
from tensornp.models.outline.spreads import Spread, Spreads
from tensornp.models.scan.findings import ALARM_RANK, EQUAL_RANK, QUIET_RANK, UNRANKED, Finding, Kind, by_kind, kind_of
from tensornp.models.scan.siblings import odd_one
from tensornp.render.pictures.png import data_uri, histogram_png
from tensornp.render.pictures.stats_line import HEIGHT, WIDTH, histogram_alt

NOT_FINITE = {"nan": "NaN", "inf": "infinities"}
"""What the navigator looks for, and how it is called."""
EXTREMES = {"max |x|": "absmax", "min": "min", "max": "max"}
"""What the navigator looks for besides, by the figure that it is."""
_SIZES = {2**10: "1 KiB", 2**20: "1 MiB", 100 * 2**20: "100 MiB"}
_LAST_PART = re.compile(r"[\\/]")
_ROOM = {
    "name": (28, 0), "kind": (9, 6), "shape": (0, 9), "elements": (9, 5), "share": (6, 13), "dtype": (14, 2),
    "where": (20, 17), "bytes": (14, 14), GRAD: (13, 3), "figures": (9, 7), "norm": (9, 1), "mean": (9, 11),
    "std": (9, 10), "max |x|": (9, 8), "zeros": (7, 12), GRADIENT: (11, 18), GRADIENT_RATIO: (15, 19),
    FINDINGS: (30, 15), "notes": (30, 16),
}  # fmt: skip
"""By the column, the characters that it has room for at most (0: by its weights), and its rank where room is scarce."""
_RIGHT = ("elements", "share", "bytes")
_MAX_SHAPE = 20
MAX_FOLDED = 1000
"""Weights of a line that is folded, of which one histogram is made: some ten milliseconds."""


class Found(NamedTuple):
    """The results of a scan for one weight: findings, texts, histogram and numbers.

    The picture of a histogram is made when its line is visible. `lacks_gradient` is true if others have a gradient.
    Weights of one `fingerprint` have the same values.
    """

    findings: tuple[Finding, ...]
    words: tuple[str, ...] = ()
    histogram: Histogram | None = None
    figures: Mapping[str, float] = MappingProxyType({})
    alarms: tuple[NotFinite, ...] = ()
    lacks_gradient: bool = False
    fingerprint: str = ""

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
    """The source of all lines: numbers of weights, scan results and extremes.

    `marked` is the column with marks, and `share_of` returns the fraction of all weights.
    """

    numbers: Mapping[str, int]
    found: Mapping[str, Found]
    spreads: Spreads | None
    marked: str
    share_of: Callable[[Sums], float]


def kinds_of(found: Mapping[str, Found]) -> dict[str, Kind]:
    """Return the worst finding by the name of its weight."""
    kinds = ((name, kind_of(one.findings)) for name, one in found.items())
    return {name: kind for name, kind in kinds if kind is not None}


def column_data(column: Column, width: int) -> dict[str, Any]:
    """Return the facts of a column for the page; it is `width` characters wide."""
    return {
        "name": column.name, "heading": "values" if column.name == "figures" else column.name,
        "isRight": column.figure is not None or column.name in _RIGHT,
        "isLargeFirst": column.has_large_first, "isSortable": column.is_sortable,
        "rank": _ROOM[column.name][1], "isFixed": column.name == "name",
        "goal": EXTREMES.get(column.name, ""), "width": width,
        "hasMark": column.name == marked_column(""),
    }  # fmt: skip


def widths_of(outline: Outline, figures: Iterable[Mapping[str, float]]) -> dict[str, int]:
    """Return the characters that the columns have room for, whichever lines are seen."""
    every, weights = list(figures), outline.weights
    shapes = {(one.shape, one.kind) for one in weights}
    longest = max([len(counted(len(weights), "weight")), *(len(shape_text(*one)) for one in shapes)])
    widths = {name: width or min(longest, _MAX_SHAPE) for name, (width, _) in _ROOM.items()}
    for sums, count in outline.alike:
        parts = shares_of(sums.numel, outline.share_of(sums), count)
        widths |= {name: max(widths[name], len(text)) for name, text in parts.items()}
    for name, said in {"name": [one.name for one in weights], **outline.choices}.items():
        # A heading has an arrow beside it.
        needed = max([len(name) + 2, *map(len, said)])
        widths |= {name: min(widths[name], needed)} if name in widths else {}
    for name, figure in figure_columns():
        values = [one[name] for one in every if name in one]
        if values:
            widths[name] = min(_ROOM[name][0], max(len(name), figure.width_of(values)))
    return widths


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
            "text": kind.with_scope(len(names)) + _groups(kind, names, found), "what": kind.what,
            "isAlarm": kind.is_alarm, "more": len(names) - 1,
            "name": cut(names[0], MAX_SHOWN) or "''", "number": numbers[names[0]],
            "goal": found[names[0]].goal if kind.is_alarm else "",
        }
        for kind, names in kinds.items()
    ]  # fmt: skip


def _groups(kind: Kind, names: Sequence[str], found: Mapping[str, Found]) -> str:
    """Return in how many groups weights have the same values, where that is not one."""
    groups = {found[name].fingerprint for name in names} if kind.rank == EQUAL_RANK else set()
    return f" in {len(groups):,} groups" if len(groups) > 1 else ""


def note_data(text: str) -> list[dict[str, Any]]:
    """Return a note next to findings without a weight, nothing for an empty text."""
    return (
        [{"text": text, "what": "", "isAlarm": False, "more": 0, "name": "", "number": -1, "goal": ""}] if text else []
    )


def marked_column(sort: str) -> str:
    """Return the column with marks: the sorted one if it has no sign, else norm."""
    figure = column_called(sort).figure if sort else None
    return sort if figure is not None and not figure.has_sign else "norm"


def line_data(line: Line, told: Told) -> dict[str, Any]:
    """Return one line of the tree."""
    own = told.found.get(line.weights[0].name) if line.number >= 0 else None
    histogram = own.histogram if own is not None else _of_folded(line, told)
    figures, titles, mark = _figures(line, own, told)
    if line.num_alike > 1:
        titles["elements"] = f"{line.num_alike:,} × {line.sums.numel // line.num_alike:,}, {line.sums.numel:,} in all"
    cells = {**_cells(line, told), **_findings(line, own, told), **figures}
    size = f"{counted(line.sums.numel, 'element')}, {counted(line.sums.nbytes, 'byte')}"
    return {
        "cells": cells,
        "branch": line.branch, "parent": line.parent, "level": line.level, "position": line.position,
        "size": line.size, "open": line.is_open, "number": line.number, "picture": picture_of(histogram),
        "titles": titles, "mark": mark,
        # What is said of it where there is no room for notes is said nowhere else.
        "title": "\n".join(filter(None, [size, cells["notes"]])),
        "alarm": _alarm(line, own, told), "odd": _odd(line, told),
        "isQuiet": line.is_quiet,
        "wholeName": legible(line.weights[0].name if line.number >= 0 else line.label),
        "className": legible(line.class_name),
    }  # fmt: skip


def _of_folded(line: Line, told: Told) -> Histogram | None:
    """Return the joint histogram of a pattern, None if some are unknown or too many."""
    parts = [told.found[one.name].histogram for one in line.weights[:MAX_FOLDED] if one.name in told.found]
    known = [one for one in parts if one is not None]
    return put_together(known) if len(known) == len(line.weights) else None


def picture_of(histogram: Histogram | None) -> dict[str, str]:
    """Return the picture and alternative text of a histogram, empty without one."""
    if histogram is None:
        return {}
    png = histogram_png(histogram, WIDTH, HEIGHT)
    return {"src": data_uri(png), "alt": histogram_alt(histogram)}


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


def _findings(line: Line, own: Found | None, told: Told) -> dict[str, str]:
    """Return the findings of a weight or below a closed line, except non-finite ones."""
    if own is not None:
        said = "; ".join(one.text for one in own.findings if one.rank >= ALARM_RANK)
        return {FINDINGS: said, "figures": " · ".join(own.words)}
    return {
        FINDINGS: " · ".join(kind.with_scope(len(names)) for kind, names in _below(line, told) if not kind.is_alarm)
    }


def _below(line: Line, told: Told) -> Iterable[tuple[Kind, list[str]]]:
    """Yield the findings below a closed line."""
    if told.spreads is not None and line.branch >= 0 and not line.is_open:
        yield from ((Kind(*kind), names) for kind, names in told.spreads.kinds(line.branch))


def _alarm(line: Line, own: Found | None, told: Told) -> dict[str, Any] | None:
    """Return the alarm of a weight, or of the weights below a closed line."""
    if own is not None:
        return _led_to(own, line.number, own.alarm, own.alarm) if own.alarm else None
    names = next((names for kind, names in _below(line, told) if kind.is_alarm), [])
    if not names or told.spreads is None:
        return None
    first = told.found[names[0]]
    if len(names) == 1:
        part = legible(part_of(names[0], *told.spreads.ends(line.branch)))
        text, what = f"{first.alarm} in {part}" if first.goal else f"{part}: {first.alarm}", first.alarm
    else:
        what = ""
        num = told.spreads.num_weights(line.branch)
        if first.goal:
            text = f"{NOT_FINITE[first.goal]} in {len(names):,} of {counted(num, 'weight')}"
        else:
            text = f"{len(names):,} of {num:,} .grad not finite"
    return _led_to(first, told.numbers[names[0]], text, what)


def _led_to(found: Found, number: int, text: str, what: str) -> dict[str, Any]:
    """Return an alarm; one of a gradient also has a short text that says so."""
    place = {"text": text, "number": number, "goal": found.goal}
    odd = next((one for one in ("NaN", "Inf") if one in what), "")
    return place if found.goal else place | {"short": f".grad {odd}".strip()}


def _odd(line: Line, told: Told) -> dict[str, Any] | None:
    """Return the weight of a closed line with an outlying norm, if any."""
    if told.spreads is None or line.branch < 0 or line.is_open or line.is_quiet:
        return None
    some = [one.name for one in line.weights[:MAX_FOLDED] if one.name in told.found]
    odd = odd_one({name: told.found[name].figures["norm"] for name in some if "norm" in told.found[name].figures})
    if odd is None:
        return None
    part = legible(part_of(odd.name, *told.spreads.ends(line.branch)))
    text = f"{at_a_glance(odd.norm)} in {part}, others ≤ {at_a_glance(odd.greatest)}"
    title = f"norm {text}: it is {odd.times:.3g} times their median"
    return {"text": text, "title": title, "number": told.numbers[odd.name], "goal": ""}


def _figures(
    line: Line, own: Found | None, told: Told
) -> tuple[dict[str, str], dict[str, str], tuple[float, float] | None]:
    """Return statistics and titles by column, and the position of the mark."""
    cells: dict[str, str] = {}
    titles: dict[str, str] = {}
    mark: tuple[float, float] | None = None
    for column, figure in figure_columns():
        spread = _spread(column, line, own, told.spreads)
        if spread is not None and told.spreads is not None:
            cells[column] = figure.text_of(*spread)
            titles |= {column: title} if (title := figure.title_of(*spread)) else {}
            is_marked = column == told.marked and not line.is_quiet
            mark = told.spreads.place(column, spread) if is_marked else mark
    return cells, titles, mark


def _spread(column: str, line: Line, own: Found | None, spreads: Spreads | None) -> Spread | None:
    """Return the extremes of a column in one weight or below a closed line."""
    if own is not None:
        value = own.figures.get(column)
        return None if value is None else Spread(value, value)
    return spreads.of(column, line.branch) if spreads is not None and line.branch >= 0 and not line.is_open else None

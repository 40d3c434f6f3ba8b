"""Scan weights, and render the findings, the columns and the cells of their tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import NamedTuple

from tensornp.core.lowlevel.text import counted, format_nbytes, legible
from tensornp.core.values.stats.distribution import Histogram
from tensornp.core.values.stats.record import NotFinite, alarm_text, alarms_of
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry, is_counter
from tensornp.models.names.quoted import MAX_SHOWN, cut
from tensornp.models.outline import columns
from tensornp.models.outline.fold import Branch, Row
from tensornp.models.scan.findings import ALARM_RANK, QUIET_RANK, UNRANKED, Finding, by_kind
from tensornp.render.layout.table import Drawn
from tensornp.render.layout.tree import TreeColumn
from tensornp.render.layout.words import format_count
from tensornp.render.pictures.stats_line import histogram_img, line_of

_WIDTHS = {
    "name": 30, "elements": 9, "bytes": 13, "figures": 9, "zeros": 7, columns.GRADIENT: 10, columns.GRADIENT_RATIO: 14,
    columns.FINDINGS: 44, "notes": 14,
} | dict.fromkeys(("norm", "mean", "std", "max |x|"), 11)  # fmt: skip
"""The least characters of columns whose texts change as rows are opened."""
_LEAST_PX = (
    dict.fromkeys(("name", "shape", "dtype", "norm"), (0, 0))
    | {"bytes": (450, 700), "notes": (450, 700), columns.GRAD: (450, 900), columns.FINDINGS: (450, 450)}
    | {"elements": (700, 1200), "max |x|": (900, 900)}
    | dict.fromkeys(("where", "mean", "std", "zeros", columns.GRADIENT, columns.GRADIENT_RATIO), (700, 1200))
)
"""The widths of a page below which a column is left out, before a scan and beside its figures; 700 for others."""
_RIGHT = ("elements", "bytes")
_MAX_SHAPE = 20


class Found(NamedTuple):
    """The results of a scan for one weight."""

    findings: tuple[Finding, ...]
    words: tuple[str, ...] = ()
    histogram: Histogram | None = None
    figures: Mapping[str, float] = MappingProxyType({})
    alarms: tuple[NotFinite, ...] = ()

    @property
    def rank(self) -> int:
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


def tree_column(column: columns.Column, sort: str, max_shape: int, *, is_scanned: bool) -> TreeColumn:
    """Return a column of the tree; the shapes have at most `max_shape` characters."""
    name = column.name
    return TreeColumn(
        name,
        "values" if name == "figures" else name,
        min(max_shape, _MAX_SHAPE) if name == "shape" else _WIDTHS.get(name, len(name)),
        is_right=column.figure is not None or name in _RIGHT,
        is_sortable=column.is_sortable,
        is_large_first=column.has_large_first,
        least_px=0 if name == sort else _LEAST_PX.get(name, (700, 700))[is_scanned],
    )


class Sums(NamedTuple):
    """The number of some weights, their elements and bytes; shared ones count once."""

    num_weights: int
    numel: int
    nbytes: int


def stored_cells(branch: Branch, sums: Sums, inside: Sequence[WeightEntry]) -> dict[str, str]:
    """Return the texts of a branch that need no scan by column; `inside` are all weights below."""
    # A tied weight has its elements.
    elements = format_count(branch.entries[0].numel if len(branch.entries) == 1 else sums.numel)
    if branch.entries:
        return columns.cells_of(Row(branch.label, branch.entries, branch.unlike)) | {"elements": elements}
    cells = {"name": legible(branch.label), "notes": legible(branch.unlike)}
    if branch.below:
        cells["elements"] = elements
        is_state = all(one.kind == "state" for one in inside[:2])
        # Of a frozen parameter, an optimizer has no state.
        num_there = sum(not (is_state and one._is_pending) for one in inside)
        cells["shape"] = counted(num_there, "state" if is_state else "weight")
        cells["bytes"] = format_nbytes(sums.nbytes)
    return cells


def cells_of_scan(own: Found) -> dict[str, str]:
    words = " · ".join(own.words)
    return {
        **{name: columns.column_called(name).figure_text(value) for name, value in own.figures.items()},
        columns.FINDINGS: "; ".join(one.text for one in own.findings if one.rank >= ALARM_RANK),
        "figures": words if own.histogram is None else Drawn(words, histogram_img(own.histogram)),
    }


def cells_of_largest(inside: Sequence[WeightEntry], found: Mapping[str, Found]) -> dict[str, str]:
    """Return the largest number of each column below a closed branch; nothing if some weights are unread."""
    weights = [one for one in inside if not one.problem and one.numel]
    every = [one for one in weights if not is_counter(one)] or weights
    if not all(one.name in found for one in every):
        return {}
    cells: dict[str, str] = {}
    for column in columns.COLUMNS:
        figures = [found[one.name].figures for one in every if column.figure is not None]
        values = [one[column.name] for one in figures if column.name in one]
        if values:
            is_one = len({column.figure_text(value) for value in values}) == 1
            sign = "±" if min(values) < 0 else "up to "
            text = f"{sign}{column.figure_text(max(map(abs, values)))}"
            cells[column.name] = column.figure_text(values[0]) if is_one else text
    return cells


def findings_html(weights: Sequence[WeightEntry], found: Mapping[str, Found], at_least: str = "") -> str:
    """Return the findings as sentences, the worst first, with buttons for their weights.

    `at_least` stands before each number if only some weights were read.
    """
    numbers = {one.name: number for number, one in enumerate(weights)}
    said = []
    for kind, names in by_kind((name, found[name].findings) for name in numbers if name in found).items():
        text, name = escape(at_least + kind.with_scope(len(names))), escape(cut(names[0], MAX_SHOWN) or "''")
        goal = found[names[0]].goal if kind.is_alarm else ""
        leads = f'data-number="{numbers[names[0]]}" data-goal="{goal}" aria-label="{text}: {name}"'
        scope = f'<span class="tensornp-alarm">{text}</span> ' if kind.is_alarm else f"{text}: "
        said.append(f'<span class="tensornp-finding">{scope}{_link_html(name, leads)}')
        if len(names) > 1:
            said.append(" " + _link_html(f"and {len(names) - 1:,} more", f'data-list="{escape(kind.what)}"'))
        said.append("</span>")
    return "".join(said)


def _link_html(text: str, attributes: str) -> str:
    return f'<button type="button" class="tensornp-copy tensornp-link" {attributes}>{text}</button>'


def note_html(text: str) -> str:
    """Return a note next to the findings; nothing for an empty text."""
    return f'<span class="tensornp-finding tensornp-note">{escape(text)}</span>' if text else ""


def found_in(rows: Sequence[WeightEntry], go_on: Callable[[int, int], bool]) -> tuple[dict[str, Found], str]:
    """Scan weights; return the findings by name, and a sentence on all.

    `go_on` takes how much of how much was read, and returns whether to go on.
    """
    from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
    from tensornp.models.live.refind import reached
    from tensornp.models.scan.run import gradients_of, scan_entries

    there: list[WeightEntry] = []
    gone: dict[str, str] = {}
    # The row says that a weight has no values.
    for one in (one for one in rows if one._can_be_read):
        try:
            there.append(reached(one))
        except TensornpError as error:
            gone[one.name] = str(error)
    table = scan_entries(there, progress=go_on)
    unguarded = Unguarded()
    found: dict[str, Found] = {}
    num_odd = 0
    gradients = gradients_of(there, unguarded, lambda: go_on(1, 1)) if table.complete else {}
    for name, stats in table.items():
        alarms = tuple(alarms_of(stats))
        figures = columns.figures_of(stats)
        findings = list(table.findings(name))
        if (gradient := gradients.get(name)) is not None:
            if alarm := alarm_text(gradient):
                num_odd += 1
                findings.append(Finding(ALARM_RANK - 1, f"{alarm} in .grad", "NaN or infinities in the gradient"))
            elif gradient.norm is not None:
                figures[columns.GRADIENT] = gradient.norm
                if stats.norm:
                    figures[columns.GRADIENT_RATIO] = gradient.norm / stats.norm
        found[name] = Found(tuple(findings), *line_of(stats), figures, alarms)
    table.failed |= gone
    for name, why in table.failed.items():
        found[name] = Found((Finding(QUIET_RANK, f"not read: {why}", "not read"),))
    said = [*table.told(), *([f"{num_odd:,} with NaN or infinities in the gradient"] if num_odd else [])]
    said += [NOT_LOOKED_AT] if unguarded.left_out else []
    return found, " · ".join(said)

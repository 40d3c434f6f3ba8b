"""Serve the tree of weights with the results of scans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensornp.core.lowlevel.text import counted, format_count, format_nbytes, legible
from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry, is_counter, shape_text
from tensornp.models.names.search import is_expression, none_fits
from tensornp.models.optimizers import number_told
from tensornp.models.outline.columns import (
    COLUMNS,
    FINDINGS,
    Asked,
    cells_of,
    column_called,
    sortable,
)
from tensornp.models.outline.fold import Row, distinguishing
from tensornp.models.outline.outline import Line, Outline
from tensornp.models.scan.findings import ALARM_RANK, Finding, by_kind
from tensornp.render.layout.table import Drawn
from tensornp.render.layout.tree import TreeColumn, TreeLink, TreeRow
from tensornp.render.layout.words import cost_of_scan
from tensornp.render.pictures.stats_line import histogram_img
from tensornp.widget.page import NONSENSE
from tensornp.widget.tree import Tree
from tensornp.widget.weight_rows import Found, tree_column

_NOT_FINITE = {"nan": "NaN", "inf": "infinities"}
_GOALS = {"max |x|": "absmax"}
"""Goals of the navigator by figure."""


class WeightTree(Tree):
    """The rows of weights."""

    sortable = sortable()

    def __init__(self, weights: Sequence[WeightEntry], classes: Mapping[str, str]) -> None:
        self._weights = weights
        self._number = number_told(weights)
        self.outline = Outline(weights, classes)
        self.opened, self.num_branches = self.outline.first_open(), self.outline.num_branches
        self.found: dict[str, Found] = {}
        shapes = {(one.shape, one.kind) for one in weights}
        longest = max((len(shape_text(*one)) for one in shapes), default=0)
        self._max_shape = max(longest, len(counted(len(weights), "weight")))

    def learn(self, found: Mapping[str, Found]) -> None:
        """Add the results of a scan to those of other weights."""
        self.found |= found
        self.outline.forget()

    # --- what orders and finds weights by the results of scans

    def number(self, column: str, name: str) -> float | None:
        """Return the sort key of a weight: a statistic or the rank of its findings."""
        own = self.found.get(name)
        return None if own is None else own.rank if column == FINDINGS else own.figures.get(column)

    def worst(self, name: str) -> str:
        """Return the kind of the worst finding of a weight, or ``""``."""
        findings = self.found[name].findings if name in self.found else ()
        return min(findings).what if findings else ""

    # --- the tree

    def below(self, parent: int, asked: Asked) -> Sequence[Any]:
        """Return the branches and weights below a branch."""
        return self.outline.below(parent)

    def chosen(self, asked: Asked) -> Sequence[WeightEntry]:
        """Return the weights of a list, in its order."""
        return self.outline.chosen(asked, self if self.found else None)

    def listed(self, asked: Asked) -> Sequence[Any]:
        """Return the weights of a list, and modules without weights that are searched for."""
        return [*self.chosen(asked), *self.outline.modules_found(asked)]

    def id_of(self, item: Any) -> int:
        """Return the id of a branch or a weight."""
        return self.outline.id_of(item)

    def path(self, number: int) -> frozenset[int]:
        """Return the ids of the rows that lead to a weight."""
        if not 0 <= number < len(self._weights):
            raise BadRequestError(NONSENSE)
        return self.outline.path(number)

    def facts(self, asked: Asked) -> dict[str, Any]:
        """Return facts about all rows."""
        listed = self.chosen(asked) if asked.is_list else self._weights
        sums = self.outline.sums_of(listed) if asked.is_list else self.outline.sums
        size = f"{counted(sums.numel, 'element')} · {format_nbytes(sums.nbytes)}"
        # The heading has the totals of all weights, among them overlapping ones.
        is_part = sums.num_weights != len(self._weights)
        text = f"{sums.num_weights:,} of {self._number} · {size}" if is_part else self._number
        return {
            "nothing": "" if listed or self.listed(asked) else self._nothing(asked),
            "text": text if asked.is_list else "",
            "cost": cost_of_scan(sums.nbytes),
        }

    def _nothing(self, asked: Asked) -> str:
        """Return a message that nothing is listed, with a suggestion."""
        if not asked.search or is_expression(asked.search):
            return "no weight fits"
        return none_fits(asked.search, [one.name for one in self._weights])

    def columns(self, asked: Asked) -> list[TreeColumn]:
        """Return the columns that say something."""
        told, figures = self.outline.told, set().union(*(one.figures for one in self.found.values()))
        # The card of a model has looked for NaN alone, which stands behind a name.
        is_scanned = bool(figures) or any(not one.alarms for one in self.found.values())
        scanned = (column for column in COLUMNS if column.is_scanned and is_scanned)
        told |= {column.name for column in scanned if column.figure is None or column.name in figures}
        columns = [column for column in COLUMNS if column.name in told]
        return [tree_column(column, asked.sort, self._max_shape, is_scanned=is_scanned) for column in columns]

    # --- one row

    def row(self, item: Any, parent: int, opened: frozenset[int], asked: Asked) -> TreeRow:
        """Return the row of a branch or a weight."""
        line = self.outline.line(item, parent)
        is_open = line.has_below and line.id in opened
        own = self.found.get(line.weights[0].name) if line.number >= 0 else None
        # A closed branch shows the findings below it.
        is_closed = bool(self.found) and line.has_below and not is_open
        known = [one.name for one in self.outline.weights_of(line.id) if one.name in self.found] if is_closed else []
        below = list(by_kind((name, self.found[name].findings) for name in known).items())
        cells = self._cells(line)
        if is_closed:
            quiet = (kind.with_scope(len(names)) for kind, names in below if not kind.is_alarm)
            cells |= self._largest_below(line)
            cells[FINDINGS] = " · ".join(quiet)
        if own is not None:
            cells |= {name: column_called(name).figure_text(value) for name, value in own.figures.items()}
            cells[FINDINGS] = "; ".join(one.text for one in own.findings if one.rank >= ALARM_RANK)
            cells["figures"] = " · ".join(own.words)
            if own.histogram is not None:
                cells["figures"] = Drawn(cells["figures"], histogram_img(own.histogram))
        goals = {name: goal for name, goal in _GOALS.items() if line.number >= 0 and cells.get(name)}
        sums = line.sums
        size = f"{counted(sums.numel, 'element')}, {counted(sums.nbytes, 'byte')}" if sums.num_weights else ""
        name = legible(line.weights[0].name if line.number >= 0 else line.label)
        return TreeRow(
            line.id,
            line.level,
            cells["name"],
            cells,
            {name: f"Go to the element of the {name} (m)" for name in goals},
            "\n".join(filter(None, (name, size, cells["notes"]))),
            beside=legible(line.class_name),
            link=self._link(line, own, below),
            number=line.number,
            is_open=is_open if line.has_below else None,
            is_quiet=line.is_quiet,
            goals=goals,
        )

    def _cells(self, line: Line) -> dict[str, str]:
        """Return the texts of a line that need no scan by column."""
        # A tied weight has its elements.
        elements = format_count(line.weights[0].numel if line.number >= 0 else line.sums.numel)
        if line.weights:
            return cells_of(Row(line.label, line.weights, line.unlike)) | {"elements": elements}
        cells = {"name": legible(line.label), "notes": legible(line.unlike)}
        if line.has_below:
            cells["elements"] = elements
            is_state = all(one.kind == "state" for one in self.outline.weights_of(line.id)[:2])
            cells["shape"] = counted(line.sums.num_weights, "state" if is_state else "weight")
            cells["bytes"] = format_nbytes(line.sums.nbytes)
        return cells

    def _largest_below(self, line: Line) -> dict[str, str]:
        """Return the largest number of each column below a closed line; nothing if some weights are unread."""
        weights = [one for one in self.outline.weights_of(line.id) if not one.problem and one.numel]
        every = [one for one in weights if not is_counter(one)] or weights
        if not all(one.name in self.found for one in every):
            return {}
        cells: dict[str, str] = {}
        for column in COLUMNS:
            figures = [self.found[one.name].figures for one in every if column.figure is not None]
            values = [one[column.name] for one in figures if column.name in one]
            if values:
                is_one = len({column.figure_text(value) for value in values}) == 1
                sign = "±" if min(values) < 0 else "up to "
                text = f"{sign}{column.figure_text(max(map(abs, values)))}"
                cells[column.name] = column.figure_text(values[0]) if is_one else text
        return cells

    def _link(self, line: Line, own: Found | None, below: Sequence[tuple[Finding, list[str]]]) -> TreeLink | None:
        """Return the alarm of a weight, or of the weights below a closed line."""
        number, text, place = line.number, own.alarm if own is not None else "", ""
        names = next((names for kind, names in below if kind.is_alarm), [])
        if names:
            own, number = self.found[names[0]], self.outline.number_of[names[0]]
            every = self.outline.weights_of(line.id)
            if len(names) == 1:
                text, place = own.alarm, f" in {legible(distinguishing(names[0], every))}"
            else:
                text = _NOT_FINITE.get(own.goal, own.alarm)
                place = f" in {len(names):,} of {counted(len(every), 'weight')}"
        if own is None or not text:
            return None
        way = "show the values there" if own.goal else "show it"
        return TreeLink(text, f"{text}{place}: {way} (n)", number, own.goal, place=place)

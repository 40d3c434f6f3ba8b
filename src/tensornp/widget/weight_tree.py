"""The tree of weights of a page: its order, its search, and its rows with the results of scans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from tensornp.core.lowlevel.text import counted, format_nbytes, legible
from tensornp.models.entries.entry import WeightEntry, is_counter, shape_text
from tensornp.models.entries.relations import each_once
from tensornp.models.optimizers import number_told
from tensornp.models.outline.columns import COLUMNS, FINDINGS, Asked, Column, column_called, facts_of, searched
from tensornp.models.outline.fold import Bare, Branch, class_said, distinguishing, tree_of, with_modules
from tensornp.models.scan.findings import by_kind
from tensornp.render.layout.tree import TreeColumn, TreeLink, TreeRow
from tensornp.widget.page import item_of
from tensornp.widget.tree import Tree
from tensornp.widget.weight_rows import Found, Sums, cells_of_largest, cells_of_scan, stored_cells, tree_column

MAX_OPEN, MAX_OPEN_MODULES = 16, 24
"""Rows up to which branches of weights, or of modules, are open from the beginning."""
_NOT_FINITE = {"nan": "NaN", "inf": "infinities"}


class _Node(NamedTuple):
    """A branch by its number: its weights in the order of the tree, level and sums."""

    branch: Branch
    span: slice
    level: int
    sums: Sums


class WeightTree(Tree):
    """The rows of weights; `found` has the results of scans by name."""

    sortable = tuple(column.name for column in COLUMNS if column.is_sortable)

    def __init__(self, weights: Sequence[WeightEntry], classes: Mapping[str, str]) -> None:
        self.weights, self._classes = weights, classes
        self.found: dict[str, Found] = {}
        self._told_number = number_told(weights)
        self.names = [one.name for one in weights]
        self._number_of = {name: number for number, name in enumerate(self.names)}
        self._sizes = {one.name: (one.numel, one.nbytes) for one in each_once(weights)}
        self.sums = self.sums_of(weights)
        every = with_modules(weights, classes)
        self._top = tree_of(every)
        # In a search each module without weights has its whole name.
        self._modules = [Branch(one.name, module=one.text) for one in every if isinstance(one, Bare)]
        self._nodes: list[_Node] = []
        self._in_order: list[WeightEntry] = []
        for branch in (*self._top, *self._modules):
            self._add(branch, 1)
        self.num_branches, self.opened = len(self._nodes), self._first_open()
        shapes = {(one.shape, one.kind) for one in weights}
        longest = max((len(shape_text(*one)) for one in shapes), default=0)
        self._max_shape = max(longest, len(counted(len(weights), "weight")))

    def _add(self, branch: Branch, level: int) -> Sums:
        """Number a branch and those below it, and return the sums of all their weights."""
        branch.number, first = len(self._nodes), len(self._in_order)
        own = self.sums_of(branch.entries)
        self._nodes.append(_Node(branch, slice(0), level, own))
        self._in_order.extend(branch.entries)
        below = [self._add(child, level + 1) for child in branch.below]
        total = Sums(*map(sum, zip(own, *below, strict=True)))
        # A weight whose name others go on from is a row of its own figures, as those are below it.
        sums = own if own.num_weights else total
        self._nodes[branch.number] = _Node(branch, slice(first, len(self._in_order)), level, sums)
        return total

    def _first_open(self) -> frozenset[int]:
        """Return the branches that are open at first, while their rows fit on a screen."""
        most = MAX_OPEN_MODULES if self._classes else MAX_OPEN
        found, num_rows, waiting = set(), len(self._top), list(self._top)
        for branch in waiting:
            are_states = all(one.entries and one.entries[0].kind == "state" for one in branch.below)
            if branch.below and not are_states and num_rows + len(branch.below) <= most:
                found.add(branch.number)
                num_rows += len(branch.below)
                waiting.extend(branch.below)
        return frozenset(found)

    def sums_of(self, weights: Iterable[WeightEntry]) -> Sums:
        sizes = [self._sizes.get(one.name, (0, 0)) for one in weights]
        return Sums(len(sizes), *(sum(map(itemgetter(i), sizes)) for i in range(2)))

    # --- the tree

    def below(self, parent: int) -> Sequence[Any]:
        if parent < 0:
            return self._top
        branch = self._nodes[parent].branch
        # A pattern opens into the weights that it stands for.
        return [*(branch.entries if len(branch.entries) > 1 else ()), *branch.below]

    def id_of(self, item: Branch | WeightEntry) -> int:
        """Return the number of a branch; the ids of weights come after those of all branches."""
        return item.number if isinstance(item, Branch) else self.num_branches + self._number_of[item.name]

    def path(self, number: int) -> frozenset[int]:
        place = self._in_order.index(item_of(self.weights, number))
        spans = ((at, node.span) for at, node in enumerate(self._nodes))
        return frozenset((*(at for at, one in spans if one.start <= place < one.stop), self.num_branches + number))

    # --- a list

    def chosen(self, asked: Asked) -> Sequence[WeightEntry]:
        chosen = self.weights
        if asked.search:
            # The page asks for the weights of one kind of finding by its words.
            alike = {name for name in self.found if self._worst(name) == asked.search}
            chosen = [one for one in self.weights if one.name in alike] if alike else self._searched(asked.search)
        return self._sorted(chosen, asked) if asked.sort else chosen

    def _searched(self, text: str) -> Sequence[WeightEntry]:
        found = searched(text, self.names, self._facts, self._lowered)
        # The first letters fit nearly all.
        return self.weights if len(found) == len(self.weights) else [self.weights[i] for i in found]

    @cached_property
    def _lowered(self) -> list[str]:
        return [name.lower() for name in self.names]

    def listed(self, asked: Asked) -> Sequence[Any]:
        """Return the weights of a list, and modules without weights that are searched for."""
        if not asked.search or asked.sort or not self._modules:
            return self.chosen(asked)
        names = self.names + [f"{one.label} {one.module}" for one in self._modules]
        num = len(self.weights)
        return [*self.chosen(asked), *(self._modules[i - num] for i in searched(asked.search, names) if i >= num)]

    def _worst(self, name: str) -> str:
        """Return the kind of the worst finding of a weight, or ``""``."""
        findings = self.found[name].findings if name in self.found else ()
        return min(findings).what if findings else ""

    @cached_property
    def _unscanned_facts(self) -> list[str]:
        return [facts_of(one, self._classes) for one in self.weights]

    def _facts(self) -> list[str]:
        """Return the words for a search of each weight, and its worst finding."""
        pairs = zip(self._unscanned_facts, self.names, strict=True)
        return [f"{words} {self._worst(name)}" for words, name in pairs] if self.found else self._unscanned_facts

    def _sorted(self, weights: Sequence[WeightEntry], asked: Asked) -> Sequence[WeightEntry]:
        """Return the weights sorted by a column; equal ones keep their order."""
        column = column_called(asked.sort)
        if column.order is not None:
            return sorted(weights, key=column.order, reverse=asked.descending)
        keys = {one.name: self._key(column, one.name) for one in weights}
        # Weights without a finding stand last, and counters behind what was learnt.
        known = [one for one in weights if keys[one.name] is not None]
        ordered = sorted(known, key=lambda one: keys[one.name] or 0, reverse=asked.descending)
        if column.figure is not None:
            ordered.sort(key=is_counter)
        return ordered + [one for one in weights if keys[one.name] is None]

    def _key(self, column: Column, name: str) -> float | None:
        own = self.found.get(name)
        return None if own is None else own.rank if column.name == FINDINGS else own.figures.get(column.name)

    def facts(self, listed: Sequence[Any] | None) -> dict[str, Any]:
        weights = listed
        if listed is not None and self._modules:
            weights = [one for one in listed if isinstance(one, WeightEntry)]
        sums = self.sums if weights is None or len(weights) == len(self.weights) else self.sums_of(weights)
        size = f"{counted(sums.numel, 'element')} · {format_nbytes(sums.nbytes)}"
        # The heading has the totals of all weights, among them overlapping ones.
        is_part = sums.num_weights != len(self.weights)
        text = f"{sums.num_weights:,} of {self._told_number} · {size}" if is_part else self._told_number
        return {"text": text if weights is not None else "", "cost": f"reads {format_nbytes(sums.nbytes)}"}

    # --- columns and rows

    def columns(self, asked: Asked) -> list[TreeColumn]:
        figures: set[str] = set().union(*(one.figures for one in self.found.values()))
        # The card of a model has looked for NaN alone, which stands behind a name.
        is_scanned = bool(figures) or any(not one.alarms for one in self.found.values())
        scanned = (column for column in COLUMNS if column.is_scanned and is_scanned)
        told = self._told | {column.name for column in scanned if column.figure is None or column.name in figures}
        columns = [column for column in COLUMNS if column.name in told]
        return [tree_column(column, asked.sort, self._max_shape, is_scanned=is_scanned) for column in columns]

    @cached_property
    def _told(self) -> frozenset[str]:
        """The columns with a text that is not the same for all weights."""
        return frozenset(column.name for column in COLUMNS if not column.is_scanned and self._is_told(column))

    def _is_told(self, column: Column) -> bool:
        if column.name == "notes":
            has_unlike = any(node.branch.unlike for node in self._nodes)
            return has_unlike or any(one.note or one.problem or one.tied_to for one in self.weights)
        if column.is_said_once and column.order is not None:
            return len({column.order(one) for one in self.weights}) > 1
        return column.is_always

    def row(self, item: Branch | WeightEntry, parent: int, opened: frozenset[int], asked: Asked) -> TreeRow:
        """Return the row of a branch, or of a weight below `parent`, -1 in a list."""
        number = self.id_of(item)
        if isinstance(item, WeightEntry):
            label, level = item.name, 1
            if parent >= 0:
                above = self._nodes[parent]
                label, level = distinguishing(item.name, above.branch.entries), above.level + 1
            node = _Node(Branch(label, (item,)), slice(0), level, self.sums_of((item,)))
        else:
            node = self._nodes[number]
        branch, sums, inside = node.branch, node.sums, self._in_order[node.span]
        one = branch.entries[0] if len(branch.entries) == 1 else None
        has_below = bool(branch.below) or len(branch.entries) > 1
        is_open = has_below and number in opened
        cells, link = stored_cells(branch, sums, inside), None
        if has_below and not is_open:
            link = self._below_closed(inside, cells)
        if one is not None and one.name in self.found:
            own = self.found[one.name]
            cells |= cells_of_scan(own)
            link = link or self._link(own, one.name)
        size = f"{counted(sums.numel, 'element')}, {counted(sums.nbytes, 'byte')}" if sums.num_weights else ""
        name = legible(one.name if one is not None else branch.label)
        return TreeRow(
            number,
            node.level,
            cells["name"],
            cells,
            "\n".join(filter(None, (name, size, cells["notes"]))),
            beside=legible(class_said(branch, self._classes)),
            link=link,
            number=self._number_of[one.name] if one is not None else -1,
            is_open=is_open if has_below else None,
            is_quiet=is_counter(branch.entries[0]) if branch.entries else not has_below,
        )

    def _below_closed(self, inside: Sequence[WeightEntry], cells: dict[str, str]) -> TreeLink | None:
        """Add the findings below a closed branch to its cells, and return a link to the first alarm."""
        known = [one.name for one in inside if one.name in self.found]
        if not known:
            return None
        below = by_kind((name, self.found[name].findings) for name in known)
        cells |= cells_of_largest(inside, self.found)
        cells[FINDINGS] = " · ".join(kind.with_scope(len(names)) for kind, names in below.items() if not kind.is_alarm)
        names = next((names for kind, names in below.items() if kind.is_alarm), [])
        if not names:
            return None
        first = self.found[names[0]]
        if len(names) == 1:
            return self._link(first, names[0], first.alarm, f" in {legible(distinguishing(names[0], inside))}")
        place = f" in {len(names):,} of {counted(len(inside), 'weight')}"
        return self._link(first, names[0], _NOT_FINITE.get(first.goal, first.alarm), place)

    def _link(self, own: Found, name: str, text: str = "", place: str = "") -> TreeLink | None:
        text = text or own.alarm
        way = "show the values there" if own.goal else "show it"
        number = self._number_of[name]
        return TreeLink(text, f"{text}{place}: {way} (n)", number, own.goal, place=place) if text else None

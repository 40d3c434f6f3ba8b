"""Arrange weights for a page as a tree of names or as a sorted list."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry, is_counter
from tensornp.models.entries.relations import not_counted
from tensornp.models.outline.columns import COLUMNS, Asked, Column, column_called, facts_of, searched
from tensornp.models.outline.fold import Bare, Branch, class_said, distinguishing, tree_of, with_modules

MAX_OPEN, MAX_OPEN_MODULES = 16, 24
"""Lines up to which branches of weights, or of modules, are open from the beginning."""


class Line(NamedTuple):
    """One line: a weight, a pattern of names with its weights, or a branch.

    `label` is the part of the name: in a list the whole name, and below a pattern the keys that differ. Each line has
    an `id`. `number` belongs to a single weight, and is -1 for others. `sums` are those of its weights, else of all
    weights below. `class_name` is the class of the modules if the name differs.
    """

    label: str
    id: int
    number: int
    level: int
    has_below: bool
    weights: tuple[WeightEntry, ...]
    sums: Sums
    unlike: str = ""
    class_name: str = ""

    @property
    def is_quiet(self) -> bool:
        """Return whether its weights are counters, or it is a module without weights."""
        return is_counter(self.weights[0]) if self.weights else not self.has_below


class Sums(NamedTuple):
    """The number of some weights, their elements and bytes; shared ones count once."""

    num_weights: int
    numel: int
    nbytes: int


class _Node(NamedTuple):
    """A branch by its number: weights in order, level and sums."""

    branch: Branch
    span: slice
    level: int
    sums: Sums


class Outline:
    """The weights of an explorer, as a page shows them."""

    def __init__(self, weights: Sequence[WeightEntry], classes: Mapping[str, str] = MappingProxyType({})) -> None:
        self.weights, self._classes = weights, classes
        self.number_of = {one.name: number for number, one in enumerate(weights)}
        self._not_counted = not_counted(weights)
        self._top = tree_of(with_modules(weights, classes))
        self._nodes: list[_Node] = []
        self._in_order: list[WeightEntry] = []
        bare = [one for one in with_modules(weights, classes) if isinstance(one, Bare)]
        # In a search each stands by its whole name.
        self._modules = [Branch(one.name, module=one.text) for one in bare]
        for branch in (*self._top, *self._modules):
            self._add(branch, 1)
        self._last: tuple[Any, Sequence[WeightEntry]] = (None, ())

    def _add(self, branch: Branch, level: int) -> Sums:
        """Number a branch and those below it, and return the sums of all their weights."""
        branch.number, first = len(self._nodes), len(self._in_order)
        own = self.sums_of(branch.entries)
        self._nodes.append(_Node(branch, slice(0), level, own))
        self._in_order.extend(branch.entries)
        below = [self._add(child, level + 1) for child in branch.below]
        total = Sums(*map(sum, zip(own, *below, strict=True)))
        # A weight whose name others go on from is a line of its own figures, as those are below it.
        sums = own if own.num_weights else total
        self._nodes[branch.number] = _Node(branch, slice(first, len(self._in_order)), level, sums)
        return total

    def first_open(self) -> frozenset[int]:
        """Return the branches that are open at first, while their lines fit on a screen."""
        most = MAX_OPEN_MODULES if self._classes else MAX_OPEN
        found, num_lines, waiting = set(), len(self._top), deque(self._top)
        while waiting:
            branch = waiting.popleft()
            are_states = all(one.entries and one.entries[0].kind == "state" for one in branch.below)
            if branch.below and not are_states and num_lines + len(branch.below) <= most:
                found.add(branch.number)
                num_lines += len(branch.below)
                waiting.extend(branch.below)
        return frozenset(found)

    def below(self, parent: int) -> Sequence[Any]:
        """Return the branches and weights below a branch; -1 is the top."""
        if parent < 0:
            return self._top
        branch = self._nodes[parent].branch
        # A pattern opens into the weights that it stands for.
        return [*(branch.entries if len(branch.entries) > 1 else ()), *branch.below]

    def id_of(self, one: Branch | WeightEntry) -> int:
        """Return the number of a branch, or one after those of all branches."""
        return one.number if isinstance(one, Branch) else len(self._nodes) + self.number_of[one.name]

    @property
    def num_branches(self) -> int:
        """Return the number of branches, whose ids come first."""
        return len(self._nodes)

    def path(self, number: int) -> frozenset[int]:
        """Return the ids of the lines that lead to a weight, and of its own line."""
        place = self._in_order.index(self.weights[number])
        spans = ((at, node.span) for at, node in enumerate(self._nodes))
        return frozenset((*(at for at, one in spans if one.start <= place < one.stop), len(self._nodes) + number))

    def line(self, one: Branch | WeightEntry, parent: int) -> Line:
        """Return the line of a branch, or of a weight below `parent`, -1 in a list."""
        if isinstance(one, WeightEntry):
            level = self._nodes[parent].level + 1 if parent >= 0 else 1
            label = distinguishing(one.name, self._nodes[parent].branch.entries) if parent >= 0 else one.name
            return Line(label, self.id_of(one), self.number_of[one.name], level, False, (one,), self.sums_of((one,)))
        node = self._nodes[one.number]
        number = self.number_of[one.entries[0].name] if len(one.entries) == 1 else -1
        has_below = bool(one.below) or len(one.entries) > 1
        class_name = class_said(one, self._classes)
        return Line(
            one.label, one.number, number, node.level, has_below, one.entries, node.sums, one.unlike, class_name
        )

    def chosen(self, asked: Asked, found: Any = None) -> Sequence[WeightEntry]:
        """Return the weights of a list, in its order; `found` has the results of a scan."""
        key = asked, found
        if self._last[0] == key:
            return self._last[1]
        chosen = self.weights
        if asked.search:
            every = chosen
            # The page asks for the weights of one kind of finding by its words.
            chosen = [one for one in every if found is not None and found.worst(one.name) == asked.search]
            chosen = chosen or [every[i] for i in searched(asked.search, self._names, lambda: self._facts(found))]
        if asked.sort:
            chosen = self._sorted(chosen, asked, found)
        self._last = key, chosen
        return chosen

    def _facts(self, found: Any) -> list[str]:
        """Return the words for a search of each weight, and its worst finding."""
        if found is None:
            return self._unscanned_facts
        pairs = zip(self._unscanned_facts, self._names, strict=True)
        return [f"{words} {found.worst(name)}" for words, name in pairs]

    @cached_property
    def _names(self) -> list[str]:
        return [one.name for one in self.weights]

    @cached_property
    def _unscanned_facts(self) -> list[str]:
        return [facts_of(one, self._classes) for one in self.weights]

    def modules_found(self, asked: Asked) -> list[Branch]:
        """Return the modules without weights whose name or class is searched for."""
        if not asked.search or asked.sort or not self._modules:
            return []
        names = self._names + [f"{one.label} {one.module}" for one in self._modules]
        num = len(self.weights)
        return [self._modules[i - num] for i in searched(asked.search, names) if i >= num]

    def _sorted(self, weights: Sequence[WeightEntry], asked: Asked, found: Any) -> Sequence[WeightEntry]:
        """Return the weights sorted by a column; equal ones keep their order."""
        column = column_called(asked.sort)
        if column.order is not None:
            return sorted(weights, key=column.order, reverse=asked.descending)
        if not column.is_sortable:
            raise BadRequestError(f"nothing is sorted by {asked.sort!r}")
        told = {one.name: found.number(column.name, one.name) for one in weights} if found is not None else {}
        # Weights without a finding stand last, and counters behind what was learnt.
        known = [one for one in weights if told.get(one.name) is not None]
        ordered = sorted(known, key=lambda one: told[one.name] or 0, reverse=asked.descending)
        if column.figure is not None:
            ordered.sort(key=is_counter)
        return ordered + [one for one in weights if told.get(one.name) is None]

    def forget(self) -> None:
        """Forget the last order after a change of the sort keys."""
        self._last = (None, ())

    def weights_of(self, branch: int) -> list[WeightEntry]:
        """Return the weights of a branch, in the order of the tree."""
        return self._in_order[self._nodes[branch].span]

    @cached_property
    def sums(self) -> Sums:
        return self.sums_of(self.weights)

    def sums_of(self, weights: Iterable[WeightEntry]) -> Sums:
        every = list(weights)
        counted = [one for one in every if one.name not in self._not_counted]
        return Sums(len(every), sum(one.numel for one in counted), sum(one.nbytes for one in counted))

    @cached_property
    def told(self) -> frozenset[str]:
        """The columns with a text that is not the same for all weights."""
        return frozenset(column.name for column in COLUMNS if not column.is_scanned and self._is_told(column))

    def _is_told(self, column: Column) -> bool:
        if column.name == "notes":
            has_unlike = any(node.branch.unlike for node in self._nodes)
            return has_unlike or any(one.note or one.problem or one.tied_to for one in self.weights)
        if column.is_said_once and column.order is not None:
            return len({column.order(one) for one in self.weights}) > 1
        return column.is_always

"""Arrange weights for a page as a tree of names or as a filtered, sorted list."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from tensornp.errors import BadRequestError
from tensornp.models.entries.entry import WeightEntry, is_counter
from tensornp.models.entries.relations import not_counted
from tensornp.models.outline.choose import STATES, Asked, has_state, passes, searched
from tensornp.models.outline.columns import Column, column_called, columns
from tensornp.models.outline.fold import HOLDERS, Branch, num_keys, tree_of, with_modules

_STATE = "state"
MAX_OPEN = 40
"""Lines up to which branches are open from the beginning."""


class Line(NamedTuple):
    """One line: a weight, a pattern of names with its weights, or a branch.

    `label` is the part of the name: in a list the whole name, and below a pattern the keys that differ. Each line has
    an `id`. `number` belongs to a single weight, and is -1 for others. `sums` are those of its weights, else of all
    weights below. `class_name` is the class of the modules if the name differs. `num_alike` counts equal parts.
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
    num_alike: int = 1

    @property
    def is_quiet(self) -> bool:
        """Return whether its weights are counters, or it is a module without weights."""
        return is_counter(self.weights[0]) if self.weights else not self.has_below


class Sums(NamedTuple):
    """The number of some weights, their elements and bytes; shared ones count once.

    `own_numel` are elements of weights alone: states of optimizers are no part of a model.
    """

    num_weights: int
    numel: int
    nbytes: int
    own_numel: int = 0


class _Node(NamedTuple):
    """A branch by its number: weights in order, keys, level and sums."""

    branch: Branch
    span: slice
    above: int
    depth: int
    level: int
    sums: Sums


class Outline:
    """The weights of an explorer, as a page shows them."""

    def __init__(self, weights: Sequence[WeightEntry], classes: Mapping[str, str] = MappingProxyType({})) -> None:
        self.weights, self._classes = weights, classes
        self.number_of = {one.name: number for number, one in enumerate(weights)}
        self._not_counted = not_counted(weights)
        self._sizes = {one.name: self._size_of(one) for one in weights}
        self._top = tree_of(with_modules(weights, classes))
        self._numbers: dict[int, int] = {}
        self._nodes: list[_Node] = []
        self.in_order: list[WeightEntry] = []
        self._said: dict[int, str] = {}
        for branch in self._top:
            self._add(branch, 0, 1)
        self._last: tuple[Any, Sequence[WeightEntry]] = (None, ())

    def _size_of(self, one: WeightEntry) -> tuple[int, int, int]:
        """Return the elements and bytes that count, and elements without those of states."""
        if one.name in self._not_counted:
            return 0, 0, 0
        return one.numel, one.nbytes, one.numel if one.kind != _STATE else 0

    def _add(self, branch: Branch, above: int, level: int) -> Sums:
        """Number a branch and those below it, and return the sums of all their weights."""
        number, depth, first = len(self._nodes), above + num_keys(branch.label), len(self.in_order)
        self._numbers[id(branch)] = number
        own = self.sums_of(branch.entries)
        node = _Node(branch, slice(0), above, depth, level, own)
        self._nodes.append(node)
        self.in_order.extend(branch.entries)
        below = [self._add(child, depth, level + 1) for child in branch.below]
        total = Sums(*map(sum, zip(own, *below, strict=True)))
        # A weight whose name others go on from is a line of its own figures, as those are below it.
        sums = own if own.num_weights else total
        self._nodes[number] = node._replace(span=slice(first, len(self.in_order)), sums=sums)
        return total

    def first_open(self) -> frozenset[int]:
        """Return the branches that are open at first, up to `MAX_OPEN` lines."""
        found, num_lines, waiting = set(), len(self._top), deque(self._top)
        while waiting:
            branch = waiting.popleft()
            if branch.below and num_lines + len(branch.below) <= MAX_OPEN:
                found.add(self._numbers[id(branch)])
                num_lines += len(branch.below)
                waiting.extend(branch.below)
        return frozenset(found)

    def below(self, parent: int, asked: Asked) -> Sequence[Any]:
        """Return the branches and weights below a branch, those at the top for -1."""
        if parent < 0:
            return self._in_order(self._top, asked)
        branch = self._nodes[parent].branch
        # A pattern opens into the weights that it stands for.
        own: tuple[Any, ...] = branch.entries if len(branch.entries) > 1 else ()
        return self._in_order([*own, *branch.below], asked)

    def id_of(self, one: Branch | WeightEntry) -> int:
        """Return the number of a branch, or one after those of all branches."""
        if isinstance(one, Branch):
            return self._numbers[id(one)]
        return len(self._nodes) + self.number_of[one.name]

    @property
    def num_branches(self) -> int:
        """Return the number of branches, whose ids come first."""
        return len(self._nodes)

    def path(self, number: int) -> frozenset[int]:
        """Return the ids of the lines that lead to a weight, and of its own line."""
        place = self.in_order.index(self.weights[number])
        spans = ((at, node.span) for at, node in enumerate(self._nodes))
        return frozenset((*(at for at, one in spans if one.start <= place < one.stop), len(self._nodes) + number))

    def _in_order(self, lines: Sequence[Any], asked: Asked) -> Sequence[Any]:
        """Return sibling lines sorted by size if requested; a fold counts as one part."""
        if not asked.orders_groups:
            return lines

        def size(one: Any) -> tuple[float, float]:
            count = one.count if isinstance(one, Branch) else 1
            sums = self._nodes[self._numbers[id(one)]].sums if isinstance(one, Branch) else self.sums_of((one,))
            return self.share_of(sums) / count if asked.sort == "share" else 0.0, sums.numel / count

        return sorted(lines, key=size, reverse=asked.descending)

    def line(self, one: Branch | WeightEntry, parent: int) -> Line:
        """Return the line of a branch, or of a weight below `parent`, -1 in a list."""
        at = self.id_of(one)
        if isinstance(one, WeightEntry):
            level = self._nodes[parent].level + 1 if parent >= 0 else 1
            label = _distinguishing(one.name, self._nodes[parent].branch.entries) if parent >= 0 else one.name
            return Line(label, at, self.number_of[one.name], level, False, (one,), self.sums_of((one,)))
        node = self._nodes[at]
        number = self.number_of[one.entries[0].name] if len(one.entries) == 1 else -1
        has_below = bool(one.below) or len(one.entries) > 1
        # Parts are not alike if weights of some count elsewhere.
        is_shared = bool(self._not_counted) and any(w.name in self._not_counted for w in self.in_order[node.span])
        return Line(
            one.label, at, number, node.level, has_below, one.entries, node.sums, one.unlike, self._class_of(at),
            1 if is_shared else one.count,
        )  # fmt: skip

    def _class_of(self, branch: int) -> str:
        """Return the class of a branch's modules if its name differs, else ``""``."""
        if not self._classes:
            return ""
        if branch not in self._said:
            node = self._nodes[branch]
            if node.branch.module:
                return node.branch.module
            # The last key of a weight is that of no module.
            depth = node.depth - (not node.branch.below)
            names = [one.name for one in self.in_order[node.span]] if depth > node.above else ()
            self._said[branch] = _class_said((".".join(name.split(".")[:depth]) for name in names), self._classes)
        return self._said[branch]

    def chosen(self, asked: Asked, found: Any = None) -> Sequence[WeightEntry]:
        """Return the weights of a list, in its order; `found` has the results of a scan."""
        key = asked, found
        if self._last[0] == key:
            return self._last[1]
        chosen = self.weights
        if asked.filters:
            chosen = [one for one in chosen if passes(one, asked.filters, found)]
        if asked.search:
            names, small = ([one.name for one in chosen], None) if asked.filters else self._names
            chosen = [chosen[i] for i in searched(asked.search, names, small)]
        if asked.sort:
            chosen = self._sorted(chosen, asked, found)
        self._last = key, chosen
        return chosen

    def _sorted(self, weights: Sequence[WeightEntry], asked: Asked, found: Any) -> Sequence[WeightEntry]:
        """Return the weights sorted by a column; equal ones keep their order."""
        column = column_called(asked.sort)
        if column.order is not None:
            return sorted(weights, key=column.order, reverse=asked.descending)
        if not column.is_found:
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
        return self.in_order[self._nodes[branch].span]

    @cached_property
    def sums(self) -> Sums:
        return self.sums_of(self.weights)

    def sums_of(self, weights: Iterable[WeightEntry]) -> Sums:
        sizes = [self._sizes[one.name] for one in weights]
        return Sums(len(sizes), *(sum(size[i] for size in sizes) for i in range(3)))

    def share_of(self, sums: Sums) -> float:
        """Return the fraction of all elements, without states if there are others."""
        if self.sums.own_numel:
            return sums.own_numel / self.sums.own_numel
        return sums.numel / self.sums.numel if self.sums.numel else 0.0

    @cached_property
    def _names(self) -> tuple[list[str], list[str]]:
        names = [one.name for one in self.weights]
        return names, [name.lower() for name in names]

    @cached_property
    def told(self) -> frozenset[str]:
        """The columns with a text that is not the same for all weights."""
        return frozenset(column.name for column in columns(with_scanned=False) if self._is_told(column))

    def _is_told(self, column: Column) -> bool:
        if column.name == "notes" and any(node.branch.unlike for node in self._nodes):
            return True
        if column.is_said_once and column.order is not None:
            return len({column.order(one) for one in self.weights}) > 1
        return column.is_always or (column.has_text is not None and any(map(column.has_text, self.weights)))

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        """The values that each filter can have, of those columns that have several."""
        found = {
            column.name: sorted(set(filter(None, map(column.choice, self.weights))))
            for column in columns()
            if column.choice is not None
        }
        several = {name: values for name, values in found.items() if len(values) > 1}
        return {**several, "state": [state for state in STATES if any(has_state(one, state) for one in self.weights)]}


def _class_said(prefixes: Iterable[str], classes: Mapping[str, str]) -> str:
    """Return the common class of modules, such as ``6 × BertLayer``, or ``""``."""
    some = set(prefixes)
    found = {classes.get(prefix, "") for prefix in some}
    if len(found) != 1 or found & {"", *HOLDERS}:
        return ""
    (said,) = found
    key = next(iter(some)).rpartition(".")[2]
    if len(some) > 1 and key.isdecimal():
        return f"{len(some):,} × {said}"
    return "" if key.replace("_", "").lower() == said.lower() else said


def part_of(name: str, first: str, last: str) -> str:
    """Return the weight's part of a line: the key that differs, such as ``layer 3``."""
    keys = name.split(".")
    ends = list(zip(first.split("."), last.split("."), strict=False))
    at = min(next((i for i, (a, b) in enumerate(ends) if a != b), len(ends)), len(keys) - 1)
    if not keys[at].isdecimal() or at == 0 or keys[at - 1].isdecimal():
        return keys[at]
    return f"{keys[at - 1].removesuffix('s')} {keys[at]}"


def _distinguishing(name: str, entries: Sequence[Any]) -> str:
    # The outermost number differs between the first and the last, the innermost one between the first two.
    keys, first, *others = (one.split(".") for one in (name, *(one.name for one in (*entries[:2], entries[-1]))))
    places = [i for other in others for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b]
    return ".".join(keys[max(min(places) - 1, 0) : max(places) + 1]) if places else name

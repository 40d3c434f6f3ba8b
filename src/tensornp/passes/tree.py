"""The calls of a pass as a tree: repeats are one line, and the way to trouble is open."""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from tensornp.core.lowlevel.text import number_ranges
from tensornp.models.outline.fold import Branch, put_together
from tensornp.passes.records import LEFT, MODULE, OPERATOR, RAISED, RECOMPUTED, Call, PassRecord, Value

MAX_LINES = 60
"""Lines up to which branches are open at first."""
_MAX_BESIDE = 40
"""Calls of one parent on a card."""
_MIN_FOLDED, _MIN_LEAVES = 2, 4
"""Numbered modules that are folded, and numbered modules without modules inside."""
_NUMBERED = re.compile(r"((?:.*\.)?)(0|[1-9][0-9]{0,17})((?:\..*)?)", re.DOTALL)
"""A name around its last number."""
FINE, PASSED_ON, TROUBLE = "fine", "passed on", "trouble"
"""States of calls."""


@dataclass(frozen=True, slots=True)
class CallLine:
    """Calls that are alike, and the number of calls inside without a line (of siblings without `calls`)."""

    label: str
    calls: tuple[Call, ...]
    level: int = 0
    num_hidden: int = 0


def state_of(call: Call) -> str:
    """Return "trouble" for a call that raised or produced NaN or Inf, "passed on" if its inputs had them."""
    if call.status in (RAISED, LEFT) or odd_word(call.params.values()):
        return TROUBLE
    given = "" if call.asked_for else odd_word(call.outputs.values())
    if not given:
        return FINE
    return PASSED_ON if odd_word(call.inputs.values()) in ("NaN", given) else TROUBLE


def odd_word(values: Iterable[Value]) -> str:
    """Return "NaN" if a value contains one, else "Inf" if one is odd, else an empty text."""
    odd = [value.figures for value in values if value.figures is not None and value.figures.is_odd]
    return "NaN" if any(one.has_nan for one in odd) else "Inf" if odd else ""


class CallTree:
    """The folded tree of a record; calls in `told` have a line of their own, and are always shown."""

    def __init__(self, record: PassRecord, told: Iterable[int] = ()) -> None:
        self.calls = record.calls
        # The block has no line.
        self._told = frozenset(told) - {0}
        self._each: list[Branch] = []
        self.top = self._branches()
        every = (self.top, *(one.below for one in self._each))
        self._folds = {self.id_of(one): one for above in every for one in above if len(one.entries) > 1}
        self._fold_of = {call.index: fold for fold, one in self._folds.items() for call in one.entries}
        self._is_loud = [one.index in self._told or state_of(one) == TROUBLE for one in self.calls]
        self._num_inside = [0] * len(self.calls)
        # A call comes after its parent.
        for call in reversed(self.calls[1:]):
            parent = call.parent or 0
            self._is_loud[parent] |= self._is_loud[call.index]
            self._num_inside[parent] += self._num_inside[call.index] + (call.kind == MODULE)

    def _branches(self) -> list[Branch]:
        """Return the folded branches below the block, and keep the branch of each call."""
        below: defaultdict[int, list[Branch]] = defaultdict(list)
        known: dict[Hashable, int] = {}
        for call in reversed(self.calls[1:]):
            children = _folded(below.pop(call.index, [])[::-1])
            branch = Branch(_label(call, self.calls[call.parent or 0]), (call,), children)
            parts = ((child.label, child.signature, len(child.entries)) for child in children)
            told = call.index if call.index in self._told else -1
            branch.signature = known.setdefault((_kind(call), told, *parts), len(known))
            below[call.parent or 0].append(branch)
            self._each.append(branch)
        self._each.append(Branch("", tuple(self.calls[:1])))
        self._each.reverse()
        return _folded(below.pop(0, [])[::-1])

    def id_of(self, branch: Branch) -> int:
        """Return the index of a branch's call; repeats have that of the first plus the number of all calls."""
        first: int = branch.entries[0].index
        return first if len(branch.entries) == 1 else len(self.calls) + first

    def opened(self, *, has_open_repeats: bool) -> frozenset[int]:
        """Return the branches that are open at first: the way to a finding, and others while there is room."""
        found: set[int] = set()
        way = self.around(min(self._told)) if self._told else frozenset()
        num_lines, numbers = min(len(self.top), _MAX_BESIDE), count()
        heap: list[tuple[bool, int, int, Branch]] = []
        waiting: Sequence[Branch] = self.top
        level = 0
        while True:
            for one in waiting:
                if one.below and (len(one.entries) == 1 or has_open_repeats):
                    heapq.heappush(heap, (not self._is_loud[one.entries[0].index], level, next(numbers), one))
            if not heap:
                return frozenset(found)
            is_calm, level, _, branch = heapq.heappop(heap)
            call, needed, waiting = branch.entries[0], min(len(branch.below), _MAX_BESIDE), []
            # Next to an alarm, fine branches stay closed; so do recomputed ones, and those of operators alone.
            is_closed = self._told or state_of(call) != FINE or call.phase == RECOMPUTED
            has_room = num_lines + needed <= MAX_LINES or self.id_of(branch) in way
            if has_room and not (is_calm and (is_closed or not self._num_inside[call.index])):
                found.add(self.id_of(branch))
                num_lines += needed
                waiting, level = branch.below, level + 1

    def lines(self) -> list[CallLine]:
        """Return the lines of a card; more calls of one parent than there is room for are counted in a line."""
        opened, lines = self.opened(has_open_repeats=True), []
        stack: list[tuple[Branch | int, int]] = self._with_rest(self.top, 0)
        while stack:
            branch, level = stack.pop()
            if isinstance(branch, int):
                lines.append(CallLine("", (), level, branch))
                continue
            is_open = self.id_of(branch) in opened
            num_hidden = 0 if is_open else sum(self._num_inside[call.index] for call in branch.entries)
            lines.append(CallLine(branch.label, branch.entries, level, num_hidden))
            stack += self._with_rest(branch.below, level + 1) if is_open else []
        return lines

    def _with_rest(self, branches: Sequence[Branch], level: int) -> list[tuple[Branch | int, int]]:
        """Return the shown branches, the last first, above the number of other calls."""
        shown = self._some(branches)
        num_hidden = sum(len(one.entries) for one in branches) - sum(len(one.entries) for one in shown)
        return [*([(num_hidden, level)] if num_hidden else []), *((one, level) for one in reversed(shown))]

    def _some(self, branches: Sequence[Branch]) -> Sequence[Branch]:
        """Return as many siblings as a card has room for, around the first in trouble."""
        loud = next((i for i, one in enumerate(branches) if self._is_loud[one.entries[0].index]), 0)
        first = max(min(loud - _MAX_BESIDE // 2, len(branches) - _MAX_BESIDE), 0)
        return branches[first : first + _MAX_BESIDE]

    def below(self, parent: int) -> Sequence[Branch]:
        """Return the branches that open below a row, -1 for the top; repeats open into their calls."""
        if parent < 0:
            return self.top
        if parent < len(self.calls):
            return self._each[parent].below
        return [self._each[call.index] for call in self._folds[parent].entries] if parent in self._folds else []

    def around(self, index: int) -> frozenset[int]:
        """Return the branches that must be open for a call to be seen."""
        found: set[int] = set()
        one = self.calls[index]
        while one.index:
            found |= {self._fold_of[one.index]} if one.index in self._fold_of else set()
            one = self.calls[one.parent or 0]
            found.add(one.index)
        return frozenset(found)


def _label(call: Call, parent: Call) -> str:
    if call.kind == OPERATOR:
        return call.name.lstrip("_")
    if parent.kind != MODULE or not call.name:
        return call.name or call.code or call.class_name
    return call.name.removeprefix(f"{parent.name}." if parent.name else "")


def _kind(call: Call) -> Hashable:
    """Return the facts that folded calls share; where an input comes from is none of them."""
    line = call.source if call.kind == OPERATOR else None
    facts: list[Hashable] = [call.kind, call.class_name, call.phase, call.status, call.detail, len(call.inputs), line]
    for path, value in (*call.inputs.items(), *call.outputs.items()):
        facts += [path, value.shape, value.dtype, value.note, value.figures and value.figures.word]
    for value in call.outputs.values():
        facts += [value.relation, value.grad and value.grad.word]
    return *facts, odd_word(call.params.values())


def _folded(branches: Sequence[Branch]) -> list[Branch]:
    """Return siblings in their order, those of one module that are alike as one, and so numbered ones."""
    each = _together(branches, [(one.label, one.signature) for one in branches])
    keys = [_numbered(one) for one in each]
    sizes = Counter(keys)
    has_modules = (any(child.entries[0].kind == MODULE for child in one.below) for one in each)
    least = (_MIN_FOLDED if has_some else _MIN_LEAVES for has_some in has_modules)
    return _together(
        each, [key if key and sizes[key] >= n else i for i, (key, n) in enumerate(zip(keys, least, strict=True))]
    )


def _together(branches: Sequence[Branch], keys: Sequence[Hashable]) -> list[Branch]:
    groups: defaultdict[Hashable, list[Branch]] = defaultdict(list)
    for branch, key in zip(branches, keys, strict=True):
        groups[key].append(branch)
    return [group[0] if len(group) == 1 else put_together(_pattern(group), group) for group in groups.values()]


def _numbered(branch: Branch) -> Hashable:
    """Return the facts of branches that differ in a number alone; None for one without a number."""
    found = _NUMBERED.fullmatch(branch.label)
    return (found[1], found[3], branch.signature, len(branch.entries)) if found else None


def _pattern(group: Sequence[Branch]) -> str:
    """Return the label of branches that have one, or differ in its number."""
    first, *others = (_NUMBERED.fullmatch(label) for label in dict.fromkeys(one.label for one in group))
    if first is None or not others:
        return group[0].label
    numbers = sorted(int(one[2]) for one in (first, *others) if one)
    return f"{first[1]}{{{','.join(number_ranges(numbers))}}}{first[3]}"

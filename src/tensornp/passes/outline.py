"""The tree of calls in few lines: repeats are one, and what is in trouble never stands among what is fine."""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from tensornp.core.lowlevel.text import number_ranges
from tensornp.models.outline.fold import Branch, put_together
from tensornp.passes.records import LEFT, RAISED, RECOMPUTED, Figures, ModuleCall, Value
from tensornp.passes.verdict.wording import is_kept

MAX_LINES = 98
"""Lines of a tree."""
FINE, PASSED_ON, TROUBLE = "fine", "passed on", "trouble"
_MIN_FOLDED, _MIN_LEAVES = 2, 4
"""Modules with numbers that are folded, and of those that call no others: a few of these are read in their order."""
_NUMBERED = re.compile(r"((?:.*\.)?)(0|[1-9][0-9]{0,17})((?:\..*)?)", re.DOTALL)
"""A name by its last number, and what stands around that."""


@dataclass(frozen=True, slots=True)
class CallLine:
    """One line of the tree.

    Attributes
    ----------
    label : str
        The name below that of the call above; ``layers.{0..11}`` for modules whose calls are alike.
    calls : tuple of ModuleCall
        Those it stands for, which are alike; none where it tells how many more there are beside.
    level : int
        How deep it is.
    num_hidden : int
        Calls that have no line: those below it, or more of those beside it.
    """

    label: str
    calls: tuple[ModuleCall, ...]
    level: int
    num_hidden: int = 0


def outlined(calls: Sequence[ModuleCall], told: Iterable[int] = (), max_lines: int = MAX_LINES) -> list[CallLine]:
    """Return the calls in at most so many lines: first what is in trouble, then by depth, the inside of folds last.

    Those that are `told`, by their indices, are in trouble, and stand alone. What only passes on what it got, what is
    computed a second time, and beside what is told all that is fine, stays closed.
    """
    loud = frozenset(told)
    root = _root_of(calls, loud)
    facts = _facts(root, loud)
    return _lines(root, facts, _shown(root, facts, max_lines, opens_fine=not loud))


def state_of(call: ModuleCall) -> str:
    """Return whether a call is fine, in trouble, or gives on a NaN or an infinity that it got."""
    if call.status in (RAISED, LEFT) or not_finite(call.params):
        return TROUBLE
    given = not_finite(call.outputs)
    if not given:
        return FINE
    return PASSED_ON if not_finite(call.inputs) in ("NaN", given) else TROUBLE


def not_finite(values: Sequence[Value]) -> str:
    """Return "NaN" where a value has one, "Inf" where one is infinite, else nothing; a mask of −Inf is fine."""
    return _worst(value.figures for value in values if not is_kept(value, values))


def not_finite_back(values: Iterable[Value]) -> str:
    """Return the same of the gradients that came back for values."""
    return _worst(value.grad for value in values)


def _worst(figures: Iterable[Figures | None]) -> str:
    known = [one for one in figures if one is not None and not one.is_finite]
    return "NaN" if any(one.has_nan for one in known) else "Inf" if known else ""


def _root_of(calls: Sequence[ModuleCall], told: frozenset[int]) -> Branch:
    """Return the calls as a tree, folded."""
    return branches_of(calls, told)[0]


def branches_of(calls: Sequence[ModuleCall], told: frozenset[int]) -> tuple[Branch, list[Branch]]:
    """Return the calls as a tree, folded, and the branch of each call by itself, of which only what is below is folded.

    Without recursion, since a record may be of any depth.
    """
    each: list[Branch] = []
    below: defaultdict[int | None, list[Branch]] = defaultdict(list)
    known: dict[Hashable, int] = {}
    # A call comes after the one above it.
    for call in reversed(calls):
        children = _folded(below.pop(call.index, [])[::-1])
        above = calls[call.parent] if call.parent is not None else None
        branch = Branch(_label(call, above), (call,), children)
        parts = ((child.label, child.signature, len(child.entries)) for child in children)
        # What is told stands alone.
        branch.signature = known.setdefault((_kind(call), call.index if call.index in told else -1, *parts), len(known))
        below[call.parent].append(branch)
        each.append(branch)
    return Branch("", below=_folded(below.pop(None, [])[::-1])), each[::-1]


def _label(call: ModuleCall, above: ModuleCall | None) -> str:
    if above is None or not call.name:
        return call.name or call.code or call.class_name
    return call.name.removeprefix(f"{above.name}." if above.name else "")


def _kind(call: ModuleCall) -> Hashable:
    """Return what calls have in common that may be folded."""
    values = tuple(
        (
            one.path,
            one.shape,
            one.dtype,
            one.relation,
            one.note,
            _worst([one.figures]),
            one.grad is None,
            _worst([one.grad]),
        )
        for one in (*call.inputs, *call.outputs)
    )
    held = not_finite(call.params)
    return call.class_name, call.phase, call.status, call.notes, len(call.inputs), held, values


def _folded(children: Sequence[Branch]) -> list[Branch]:
    """Return calls in their order: those of one module that are alike as one, and so those with numbers."""
    each = _together(children, [(one.label, one.signature) for one in children])
    keys = [_numbered(one) for one in each]
    sizes = Counter(keys)
    least = (_MIN_FOLDED if one.below else _MIN_LEAVES for one in each)
    return _together(
        each, [key if key and sizes[key] >= n else i for i, (key, n) in enumerate(zip(keys, least, strict=True))]
    )


def _together(branches: Sequence[Branch], keys: Sequence[Hashable]) -> list[Branch]:
    """Return those of one key as one, at the place of the first."""
    groups: defaultdict[Hashable, list[Branch]] = defaultdict(list)
    for branch, key in zip(branches, keys, strict=True):
        groups[key].append(branch)
    return [group[0] if len(group) == 1 else put_together(_pattern(group), group) for group in groups.values()]


def _numbered(branch: Branch) -> Hashable:
    """Return what those have in common that differ in a number alone; None of what has none."""
    found = _NUMBERED.fullmatch(branch.label)
    return (found[1], found[3], branch.signature, len(branch.entries)) if found else None


def _pattern(group: Sequence[Branch]) -> str:
    """Return the label of branches that have one, or differ in its number."""
    first, *others = (_NUMBERED.fullmatch(label) for label in dict.fromkeys(one.label for one in group))
    if first is None or not others:
        return group[0].label
    numbers = sorted(int(one[2]) for one in (first, *others) if one)
    return f"{first[1]}{{{','.join(number_ranges(numbers))}}}{first[3]}"


class _Fact(NamedTuple):
    """Of a branch and all that is below it."""

    num_calls: int
    is_loud: bool


def _facts(root: Branch, told: frozenset[int]) -> dict[int, _Fact]:
    """Return the facts of all branches by their ids."""
    order = [root]
    for branch in order:
        order.extend(branch.below)
    facts: dict[int, _Fact] = {}
    for branch in reversed(order):
        below = [facts[id(child)] for child in branch.below]
        is_loud = any(call.index in told or state_of(call) == TROUBLE for call in branch.entries[:1])
        num_calls = len(branch.entries) + sum(one.num_calls for one in below)
        facts[id(branch)] = _Fact(num_calls, is_loud or any(one.is_loud for one in below))
    return facts


def _shown(root: Branch, facts: dict[int, _Fact], max_lines: int, *, opens_fine: bool) -> set[int]:
    """Return the ids of the branches that have lines; one more is for those that are left out beside them."""
    shown: set[int] = set()
    num_shown: Counter[int] = Counter()
    numbers = count()
    heap: list[tuple[tuple[bool, bool, int, int], Branch, Branch]] = []

    def opened(above: Branch, level: int, *, in_fold: bool) -> None:
        for child in above.below:
            heapq.heappush(heap, ((not facts[id(child)].is_loud, in_fold, level, next(numbers)), child, above))

    opened(root, 0, in_fold=False)
    while heap:
        (_, in_fold, level, _), branch, above = heapq.heappop(heap)
        num_shown[id(above)] += 1
        if len(above.below) > 1:
            # The first has a line for the others beside it, which the last of them takes.
            max_lines -= (num_shown[id(above)] == 1) - (num_shown[id(above)] == len(above.below))
        max_lines -= 1
        if max_lines < 0:
            break
        shown.add(id(branch))
        call = branch.entries[0]
        if facts[id(branch)].is_loud or (opens_fine and state_of(call) == FINE and call.phase != RECOMPUTED):
            opened(branch, level + 1, in_fold=in_fold or len(branch.entries) > 1)
    return shown


def _lines(root: Branch, facts: dict[int, _Fact], shown: set[int]) -> list[CallLine]:
    lines = []
    stack: list[tuple[Branch | int, int]] = [(root, -1)]
    while stack:
        branch, level = stack.pop()
        if isinstance(branch, int):
            lines.append(CallLine("", (), level, branch))
            continue
        own = [child for child in branch.below if id(child) in shown]
        hidden = facts[id(branch)].num_calls - len(branch.entries) - sum(facts[id(child)].num_calls for child in own)
        if branch is not root:
            lines.append(CallLine(branch.label, branch.entries, level, 0 if own else hidden))
        if hidden and (own or branch is root):
            stack.append((hidden, level + 1))
        stack.extend((child, level + 1) for child in reversed(own))
    return lines

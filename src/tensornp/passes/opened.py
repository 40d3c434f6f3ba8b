"""The calls as somebody opens them: a tree whose repeats are one line until unfolded, or a list that is sorted."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tensornp.models.outline.choose import Asked, searched
from tensornp.models.outline.fold import Branch
from tensornp.passes.outline import FINE, TROUBLE, CallLine, branches_of, state_of
from tensornp.passes.records import RECOMPUTED, ModuleCall

MAX_OPEN = 40
"""Lines up to which branches are open from the beginning."""
Order = Callable[[str, ModuleCall], Any]
"""By a column and a call: what it is sorted by, None of nothing."""
Passes = Callable[[str, str, ModuleCall], bool]
"""By a column, what is wanted in it, and a call: whether it has that."""


class OpenedLine(NamedTuple):
    """One line, with its place in the tree: `branch` is what can be opened, and `parent` the line above it, else -1.

    `position` of `size` lines of one level counts from 1, as ARIA does; `level` does too. Of a single call, `number` is
    its index; else it is -1.
    """

    line: CallLine
    number: int
    branch: int
    parent: int
    position: int
    size: int
    is_open: bool

    @property
    def level(self) -> int:
        """How deep it is, from 1 on."""
        return self.line.level + 1


class OpenedCalls:
    """The calls of a pass, as they are listed, opened and unfolded; those that are `told` stand alone, and are seen."""

    def __init__(self, calls: Sequence[ModuleCall], told: Iterable[int], order: Order, passes: Passes) -> None:
        self.calls, self._order, self._passes = calls, order, passes
        loud = frozenset(told)
        self._root, self._each = branches_of(calls, loud)
        self._names = [call.title for call in calls]
        # What is below a branch that is loud; a call comes after the one above it.
        self._is_loud = [call.index in loud or state_of(call) == TROUBLE for call in calls]
        for call in reversed(calls):
            if call.parent is not None and self._is_loud[call.index]:
                self._is_loud[call.parent] = True
        self._fold_of = {
            call.index: self.id_of(child)
            for above in (self._root, *self._each)
            for child in above.below
            if len(child.entries) > 1
            for call in child.entries
        }
        self._open = self._opened(opens_fine=not loud)
        self._last: tuple[Asked | None, Sequence[Any]] = (None, ())

    def id_of(self, branch: Branch) -> int:
        """Return the number of a branch: the index of its call, and of repeats that of the first beyond all calls."""
        first: int = branch.entries[0].index
        return first if len(branch.entries) == 1 else len(self.calls) + first

    def _below(self, branch: Branch) -> Sequence[Branch]:
        """Return what opens below a branch: what was called, or the calls that are one line."""
        return branch.below if len(branch.entries) <= 1 else [self._each[call.index] for call in branch.entries]

    def _opened(self, *, opens_fine: bool) -> set[int]:
        """Return the branches that are open at first: what leads to trouble, then by depth, repeats never."""
        found: set[int] = set()
        num_lines = len(self._root.below)
        heap: list[tuple[bool, int, int]] = []

        def wait(branches: Iterable[Branch], level: int) -> None:
            for one in branches:
                if one.below and len(one.entries) == 1:
                    index = one.entries[0].index
                    heapq.heappush(heap, (not self._is_loud[index], level, index))

        wait(self._root.below, 0)
        while heap:
            is_calm, level, index = heapq.heappop(heap)
            branch, call = self._each[index], self.calls[index]
            is_fine = state_of(call) == FINE and call.phase != RECOMPUTED
            if (is_calm and not (opens_fine and is_fine)) or num_lines + len(branch.below) > MAX_OPEN:
                continue
            found.add(index)
            num_lines += len(branch.below)
            wait(branch.below, level + 1)
        return found

    def num_lines(self, asked: Asked) -> int:
        """Return how many lines there are; BadRequestError for a regular expression that is none."""
        return len(self._seen(asked))

    def lines(self, asked: Asked, first: int, count: int) -> list[OpenedLine]:
        """Return some of the lines; raises as `num_lines`."""
        seen = self._seen(asked)[first : first + count]
        if not asked.is_list:
            return [self._line(asked, *one) for one in seen]
        size = self.num_lines(asked)
        return [
            OpenedLine(CallLine(call.title, (call,), 0), call.index, -1, -1, first + i + 1, size, is_open=False)
            for i, call in enumerate(seen)
        ]

    def revealed(self, asked: Asked, number: int) -> tuple[Asked, int]:
        """Return what is seen once all that holds a call is open, and in which line it is; -1 of what is left out."""
        if asked.is_list:
            return asked, next((at for at, call in enumerate(self._seen(asked)) if call.index == number), -1)
        around: set[int] = set()
        index: int | None = number
        while index is not None:
            around |= {index} if index != number else set()
            around |= {self._fold_of[index]} if index in self._fold_of else set()
            index = self.calls[index].parent
        asked = replace(asked, toggled=asked.toggled ^ {one for one in around if not self.is_open(one, asked)})
        own = self._each[number]
        return asked, next((at for at, (branch, *_) in enumerate(self._seen(asked)) if branch is own), -1)

    def is_open(self, branch: int, asked: Asked) -> bool:
        """Return whether what is below a branch is seen."""
        return (branch in self._open) != (branch in asked.toggled)

    def chosen(self, asked: Asked) -> Sequence[ModuleCall]:
        """Return the calls of a list, in its order."""
        calls = [one for one in self.calls if all(self._passes(column, said, one) for column, said in asked.filters)]
        if asked.search:
            calls = [calls[i] for i in searched(asked.search, [self._names[one.index] for one in calls])]
        if not asked.sort:
            return calls
        keys = {one.index: self._order(asked.sort, one) for one in calls}
        # Of what nothing is known, nothing comes first.
        known = [one for one in calls if keys[one.index] is not None]
        known.sort(key=lambda one: keys[one.index], reverse=asked.descending)
        return [*known, *(one for one in calls if keys[one.index] is None)]

    def _seen(self, asked: Asked) -> Sequence[Any]:
        """Return the calls of a list, or the branches that are open, with parent, level, position and size."""
        if self._last[0] != asked:
            self._last = asked, self.chosen(asked) if asked.is_list else self._visible(asked)
        return self._last[1]

    def _visible(self, asked: Asked) -> Sequence[Any]:
        found: list[Any] = []
        top = self._root.below
        stack = [(branch, -1, 0, i + 1, len(top)) for i, branch in enumerate(top)][::-1]
        while stack:
            one = branch, _, level, _, _ = stack.pop()
            found.append(one)
            at = len(found) - 1
            below = self._below(branch)
            if below and self.is_open(self.id_of(branch), asked):
                stack.extend((child, at, level + 1, i + 1, len(below)) for i, child in reversed(list(enumerate(below))))
        return found

    def _line(self, asked: Asked, one: Branch, parent: int, level: int, position: int, size: int) -> OpenedLine:
        own = self.id_of(one)
        branch = own if self._below(one) else -1
        line = CallLine(one.label, one.entries, level)
        number = own if len(one.entries) == 1 else -1
        return OpenedLine(line, number, branch, parent, position, size, branch >= 0 and self.is_open(own, asked))

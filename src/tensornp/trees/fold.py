"""Names that repeat: ``layers.{0..31}.weight`` stands for 32 weights of one shape and dtype."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tensornp.trees.entry import WeightEntry

Entries = tuple[WeightEntry, ...]
_MIN_FOLDED = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One name, or a pattern of names, and its weights, which are alike."""

    pattern: str
    entries: Entries

    @property
    def kind_of_row(self) -> tuple[Any, ...]:
        """What rows have in common that may be folded."""
        first = self.entries[0]
        return self.pattern, first.kind, first.shape, first.dtype, first.note, bool(first.problem), bool(first.tied_to)


@dataclass(slots=True)
class _Node:
    """The weights whose names begin alike."""

    entry: WeightEntry | None = None
    below: dict[str, _Node] = field(default_factory=dict)


def folded(entries: Iterable[WeightEntry]) -> list[Row]:
    """Return the weights in rows: numbered parts that consist of the same are folded, the others stand alone."""
    root = _Node()
    for entry in entries:
        node = root
        for key in entry.name.split("."):
            node = node.below.setdefault(key, _Node())
        node.entry = entry
    return _rows(root)


def _rows(root: _Node) -> list[Row]:
    """Return the rows of a node; without recursion, since a name may have any number of dots."""
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(node.below.values())
    rows: dict[int, list[Row]] = {}
    for node in reversed(order):
        own = [Row("", (node.entry,))] if node.entry is not None else []
        rows[id(node)] = own + _of_children({key: rows.pop(id(child)) for key, child in node.below.items()})
    return rows[id(root)]


def _of_children(children: dict[str, list[Row]]) -> list[Row]:
    """Return the rows of all children, in their order; those with numbers that are alike at the place of the first."""
    alike: dict[Any, list[str]] = {}
    for key, rows in children.items():
        is_number = key.isdecimal() and key.isascii()
        alike.setdefault(tuple(row.kind_of_row for row in rows) if is_number else key, []).append(key)
    found: list[Row] = []
    for keys in alike.values():
        if len(keys) < _MIN_FOLDED:
            found.extend(Row(_joined(keys[0], row.pattern), row.entries) for row in children[keys[0]])
            continue
        head = "{" + ",".join(_ranges(sorted(map(int, keys)))) + "}"
        together = zip(*(children[key] for key in keys), strict=True)
        for same in together:
            found.append(Row(_joined(head, same[0].pattern), tuple(entry for row in same for entry in row.entries)))
    return found


def _joined(key: str, rest: str) -> str:
    return f"{key}.{rest}" if rest else key


def _ranges(numbers: list[int]) -> Iterator[str]:
    """Yield numbers that follow each other as ``0..31``."""
    first = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == last + 1:
            last = number
            continue
        yield f"{first}..{last}" if last > first else str(first)
        if number is not None:
            first = last = number

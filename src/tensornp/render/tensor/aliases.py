"""The aliases of a tensor as lines of its card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tensornp.core.memory.aliases import Alias, Aliases
from tensornp.core.summary.surroundings import Surroundings
from tensornp.render.layout.document import Document, small_print
from tensornp.render.layout.table import Table, TableRow, without_empty

MAX_NAMES = 6
"""Names that a line shows."""
HEADINGS = ("name", "what", "relation", "shared bytes", "note")
ALWAYS = HEADINGS[:3]
_CLASSES = {"ndarray": "NumPy array", "": "NumPy array"}
_GROUPS = (
    ("also named", ("same object",)),
    ("same memory as", ("same elements", "reinterpreted")),
    ("overlaps", ("overlapping",)),
    ("may overlap", ("may overlap",)),
    ("other elements of the same storage:", ("same storage",)),
    ("no longer shares with", ("stale",)),
)


class MemoryName(NamedTuple):
    """One name in a line: the expression, what is said beside it, and the sentence behind it."""

    name: str
    beside: str
    title: str


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """One line: its words, the names, and what follows them."""

    words: str
    names: tuple[MemoryName, ...]
    rest: str = ""

    @property
    def text(self) -> str:
        """The line as plain text."""
        return f"{self.words} {', '.join(item.name + item.beside for item in self.names)}{self.rest}".strip()


def memory_lines(around: Surroundings) -> tuple[MemoryLine, ...]:
    """Return the lines on other tensors in the same memory, the closest relation first."""
    lines = _lines([alias for alias in around.aliases if _is_news(alias)])
    lines += [MemoryLine(f".grad: {line.words}", line.names, line.rest) for line in _lines(around.grad_aliases)]
    lines += [MemoryLine(text, ()) for text in (around.left_out,) if text]
    return tuple(lines)


def folded_lines(around: Surroundings) -> list[str]:
    """Return the lines behind the fold.

    Other names, IPython's history, how far the search came.
    """
    folded = [alias for alias in around.aliases if not _is_news(alias) and alias.name != around.name]
    lines = [line.text for line in _lines(folded)]
    return lines + ([stopped_text(around)] if around.stopped else [])


def _is_news(alias: Alias) -> bool:
    """Return whether a name tells more than that the tensor has it, or that IPython has kept it."""
    return alias.relation != "same object" and not alias.name.startswith("Out[")


def stopped_text(around: Surroundings) -> str:
    """Return that the search for aliases was not complete, and the cure; empty if it was."""
    return f"{around.stopped}; tnp.aliases(t) searches longer" if around.stopped else ""


def _lines(aliases: Sequence[Alias]) -> list[MemoryLine]:
    lines: list[MemoryLine] = []
    for words, relations in _GROUPS if aliases else ():
        group = [alias for alias in aliases if alias.relation in relations]
        if group:
            left_out = len(group) - MAX_NAMES
            rest = f" and {left_out:,} more" if left_out > 0 else ""
            lines.append(MemoryLine(words, tuple(map(_named, group[:MAX_NAMES])), rest))
    return lines


def aliases_document(aliases: Aliases) -> Document:
    """Return a table of the aliases, the closest first, and the extent of the search."""
    return Document((_table(aliases), small_print(aliases.remark)))


def _table(aliases: Aliases) -> Table:
    rows = (TableRow((alias.name, _what(alias), alias.relation, _where(alias), alias.note)) for alias in aliases)
    return without_empty(Table(HEADINGS, tuple(rows)), ALWAYS)


def _what(alias: Alias) -> str:
    return array_words(alias.type_name) if alias.kind == "array" else alias.kind


def array_words(type_name: str) -> str:
    """Return the words for a class of arrays: "NumPy array", "memoryview"."""
    return _CLASSES.get(type_name, type_name)


def _where(alias: Alias) -> str:
    return f"{alias.byte_range[0]:,} to {alias.byte_range[1]:,}" if alias.byte_range else ""


def _named(alias: Alias) -> MemoryName:
    where = f", bytes {_where(alias)}" if alias.byte_range else ""
    note = f"; {alias.note}" if alias.note else ""
    beside = f" ({_what(alias)})" if alias.kind == "array" else ""
    return MemoryName(alias.name, beside, f"{alias.kind}: {alias.relation}{where}{note}")

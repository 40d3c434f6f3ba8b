"""The aliases of a tensor as lines of its card."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from tensornp.core.memory.aliases import Alias, Aliases
from tensornp.core.summary.surroundings import Surroundings
from tensornp.render.layout.document import Document, small_print
from tensornp.render.layout.style import CODE, SMALL
from tensornp.render.layout.table import Table, TableRow

MAX_NAMES = 6
"""Names that a line shows."""
HEADINGS = ("name", "what", "relation")
_CLASSES = {"ndarray": "NumPy array", "": "NumPy array"}
_GROUPS = (
    ("also named", ("same object",)),
    ("same memory as", ("same elements", "reinterpreted")),
    ("overlaps", ("overlapping",)),
    ("may overlap", ("may overlap",)),
    ("other elements of the same storage:", ("same storage",)),
    ("no longer shares with", ("stale",)),
)


class MemoryLine(NamedTuple):
    """A line as text and as HTML."""

    text: str
    html: str


def memory_lines(around: Surroundings) -> list[MemoryLine]:
    """Return the lines on other tensors in the same memory, the closest relation first."""
    lines = _lines([alias for alias in around.aliases if _is_news(alias)])
    return [*lines, *([plain_line(around.left_out)] if around.left_out else [])]


def plain_line(text: str) -> MemoryLine:
    """Return a line without a name."""
    return MemoryLine(text, f'<div style="{SMALL}">{escape(text)}</div>')


def folded_lines(around: Surroundings) -> list[str]:
    """Return the lines behind the fold: other names, IPython's history, the extent of the search."""
    folded = [alias for alias in around.aliases if not _is_news(alias) and alias.name != around.name]
    return [line.text for line in _lines(folded)] + ([stopped_text(around)] if around.stopped else [])


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
            pairs = list(map(_named, group[:MAX_NAMES]))
            texts, html = (", ".join(some) for some in zip(*pairs, strict=True))
            line = f'<div style="{SMALL}">{words} {html}{rest}</div>'
            lines.append(MemoryLine(f"{words} {texts}{rest}", line))
    return lines


def _named(alias: Alias) -> tuple[str, str]:
    """Return a name as text, and as HTML with a sentence behind it."""
    beside = f" ({_what(alias)})" if alias.kind == "array" else ""
    title = f"{alias.kind}: {alias.relation}"
    title += "; it lies in memory that the tensor has left" if alias.relation == "stale" else ""
    name = f'<code style="{CODE}">{escape(alias.name)}</code>{escape(beside)}'
    return alias.name + beside, f'<span title="{escape(title)}">{name}</span>'


def aliases_document(aliases: Aliases) -> Document:
    """Return a table of the aliases, the closest first, and the extent of the search."""
    rows = (TableRow((alias.name, _what(alias), alias.relation)) for alias in aliases)
    return Document((Table(HEADINGS, tuple(rows)), small_print(aliases.remark)))


def _what(alias: Alias) -> str:
    return array_words(alias.type_name) if alias.kind == "array" else alias.kind


def array_words(type_name: str) -> str:
    """Return the words for a class of arrays: "NumPy array", "memoryview"."""
    return _CLASSES.get(type_name, type_name)

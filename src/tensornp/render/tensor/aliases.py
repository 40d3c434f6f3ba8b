"""The aliases of a tensor as lines of its card."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tensornp.core.memory.aliases import Alias, Aliases
from tensornp.core.summary.card import Surroundings
from tensornp.render.layout.document import Document, Part, small_print
from tensornp.render.layout.style import CODE, SMALL
from tensornp.render.layout.table import Table, TableRow

MAX_NAMES = 6
"""Names that a line shows."""
HEADINGS = ("name", "what", "relation")
_GROUPS = {
    "same object": "also named",
    "same elements": "same memory as",
    "reinterpreted": "same memory as",
    "overlapping": "overlaps",
    "may overlap": "may overlap",
    "same storage": "other elements of the same storage:",
    "stale": "no longer shares with",
}
"""The words for each relation, the closest first."""


def memory_lines(around: Surroundings) -> list[Part]:
    """Return the lines on other tensors in the same memory, the closest relation first."""
    lines = _lines(_news(around))
    return [*lines, plain_line(around.left_out)] if around.left_out else lines


def plain_line(text: str) -> Part:
    return Part(text, f'<div style="{SMALL}">{escape(text)}</div>')


def folded_lines(around: Surroundings) -> list[str]:
    """Return the lines behind the fold: other names, IPython's history, the extent of the search."""
    news = _news(around)
    folded = [alias for alias in around.aliases if alias not in news and alias.name != around.name]
    return [line.text for line in _lines(folded)] + ([stopped_text(around)] if around.stopped else [])


def _news(around: Surroundings) -> list[Alias]:
    """Return other tensors in the memory and other modules of a tied weight, no results of IPython."""
    tied: list[Alias] = []
    others: list[Alias] = []
    for alias in around.aliases:
        module, _, name = alias.name.rpartition(".")
        if alias.relation != "same object":
            others += [alias] * (not alias.name.startswith("Out["))
        elif alias.kind == "parameter" and module and name.isidentifier():
            tied.append(alias)
    return [alias for alias in tied if alias.name != around.name and len(tied) > 1] + others


def stopped_text(around: Surroundings) -> str:
    """Return that the search for aliases was not complete, and the cure; empty if it was."""
    return f"{around.stopped}; tnp.aliases(t) searches longer" if around.stopped else ""


def _lines(aliases: Sequence[Alias]) -> list[Part]:
    groups: dict[str, list[Alias]] = {}
    for alias in aliases:
        groups.setdefault(_GROUPS[alias.relation], []).append(alias)
    lines = []
    for words in filter(groups.get, dict.fromkeys(_GROUPS.values())):
        left_out = len(groups[words]) - MAX_NAMES
        rest = f" and {left_out:,} more" if left_out > 0 else ""
        names = [_named(alias) for alias in groups[words][:MAX_NAMES]]
        texts, html = (", ".join(some) for some in zip(*names, strict=True))
        html = f'<div style="{SMALL}">{words} {html}{rest}</div>'
        lines.append(Part(f"{words} {texts}{rest}", html))
    return lines


def _named(alias: Alias) -> tuple[str, str]:
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
    return "NumPy array" if alias.kind == "array" else alias.kind

"""The one table: aligned text that is as wide as a terminal shows it, and static HTML."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from tensornp.render.layout import style as css

_CODE = re.compile(r"`([^`\n]+)`")
_PLURALS = {"parameter": "parameters", "buffer": "buffers"}
"""Kinds of weights as the heading of a table names them."""


class Drawn(str):
    """A cell with raw HTML, such as a picture; `html` is not escaped."""

    html: str

    def __new__(cls, text: str, html: str) -> Drawn:
        drawn = super().__new__(cls, text)
        drawn.html = html
        return drawn


def html_of(text: str) -> str:
    return text.html if isinstance(text, Drawn) else escape(text)


def coded(text: str) -> str:
    """Return a text as HTML, with words in backticks as code."""
    return _CODE.sub(rf'<code style="{css.CODE}">\1</code>', escape(text))


class TableRow(NamedTuple):
    """One row: a cell for each heading, or one across all columns.

    `alarm` stands behind the first cell, which is indented by `level`. Rows without facts (`has_facts`) do not count as
    different from the others.
    """

    cells: tuple[str, ...]
    begins_group: bool = False
    has_facts: bool = True
    alarm: str = ""
    level: int = 0
    is_quiet: bool = False


class Table(NamedTuple):
    headings: tuple[str, ...]
    rows: tuple[TableRow, ...]


MARKS = "marks"
FIRST, SECOND = "first: min … max", "second: min … max"
"""Columns of two passes side by side."""
RIGHT = (
    "bytes", "change", "largest difference", "not equal", "min … max", "‖out‖", "‖grad‖", "‖·‖", FIRST, SECOND,
)  # fmt: skip
"""Columns of numbers, which are aligned by their last digit."""
WRAPPED = (
    "to see", "meaning", "what it means", "values", "where", "finding", "what", "shared with", "kept alive by",
    "changed", "value", MARKS,
)  # fmt: skip
"""Columns of words or numbers, which a page may break into lines."""
NAMED = ("name", "call", "differs")
"""First columns of names, which break after their parts."""
_BREAKS = re.compile(r"(?<=[._/\[\]])(?=[^._/\[\]\s\d])|(?<=[^\W_]{24})(?=[^\W_])")
"""Places where a name may break. The page gets a tag there, so that a copied name has no other characters."""
_INDENT, _INDENT_PX = "  ", 16
"""The indent of one level of a tree."""
_MAX_WHOLE, _MAX_SHORT = 24, 12
"""Characters of a name that does not break, and of a column of words that need no room to break."""


def without_empty(table: Table, kept: tuple[str, ...]) -> Table:
    """Remove empty columns from a table, except those in `kept`."""
    said = {heading for i, heading in enumerate(table.headings) if any(row.cells[i] for row in _full_rows(table))}
    return only(table, [heading for heading in table.headings if heading in said or heading in kept])


def without_common(table: Table, columns: tuple[str, ...]) -> tuple[Table, tuple[str, ...]]:
    """Return the table without constant `columns`, and the values of these; a single row keeps all."""
    rows = [row for row in _full_rows(table) if row.has_facts]
    common: dict[str, str] = {}
    if len(rows) > 1:
        for i, heading in enumerate(table.headings):
            cells = {row.cells[i] for row in rows} if heading in columns else set()
            common |= {heading: cells.pop()} if len(cells) == 1 else {}
    said = tuple(text for text in common.values() if text)
    return only(table, [heading for heading in table.headings if heading not in common]), said


def said_once(common: tuple[str, ...], *, is_whole: bool) -> list[str]:
    """Return the cells that all rows have in common, for the heading."""
    words = ", ".join(_PLURALS.get(word, word) for word in common)
    return [f"all {'' if is_whole else 'rows '}{words}"] if common else []


def _full_rows(table: Table) -> list[TableRow]:
    return [row for row in table.rows if len(row.cells) == len(table.headings)]


def only(table: Table, headings: Sequence[str]) -> Table:
    used = [table.headings.index(heading) for heading in headings]

    def shortened(row: TableRow) -> TableRow:
        if len(row.cells) < len(table.headings):
            return row
        return row._replace(cells=tuple(row.cells[i] for i in used))

    return Table(tuple(headings), tuple(map(shortened, table.rows)))


def table_text(table: Table) -> str:
    """Return the table as lines of text, its columns aligned; nothing without rows."""
    if not table.rows:
        return ""
    lines = [table.headings]
    for row in table.rows:
        alarm = f" · {row.alarm}" if row.alarm else ""
        lines.append((f"{_INDENT * row.level}{row.cells[0]}{alarm}", *row.cells[1:]))
    columns = zip(*(cells for cells in lines if len(cells) == len(table.headings)), strict=True)
    widths = [max(map(len, column)) for column in columns]

    def padded(heading: str, cell: str, width: int) -> str:
        space = " " * (width - len(cell))
        return space + cell if heading in RIGHT else cell + space

    return "\n".join(
        "  ".join(map(padded, table.headings, cells, widths)).rstrip() if len(cells) == len(widths) else cells[0]
        for cells in lines
    )


def table_html(table: Table) -> str:
    """Return the table as static HTML; nothing without rows."""
    if not table.rows:
        return ""
    kinds = _kinds(table)
    head = "".join(
        f'<th scope="col"{kind}">{escape(heading)}</th>' for heading, kind in zip(table.headings, kinds, strict=True)
    )
    body = "".join(_row_html(row, kinds, has_names=_has_names(table)) for row in table.rows)
    return f'<table style="{css.TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{css.PRINTED}'


def rows_html(table: Table, like: Table, numbers: Sequence[Mapping[str, float]]) -> str:
    """Return rows in the columns of the table `like`, for a page that sorts them by `numbers` of each row."""
    kinds = _kinds(like)
    html = []
    for row, own in zip(table.rows, numbers, strict=True):
        keys = [own.get(heading, math.nan) for heading in table.headings]
        marks = [f' data-n="{float(key)!r}"' if math.isfinite(key) else "" for key in keys]
        html.append(_row_html(row, [*map("".join, zip(marks, kinds, strict=True))], has_names=_has_names(like)))
    return "".join(html)


def _has_names(table: Table) -> bool:
    return table.headings[0] in NAMED


def _kinds(table: Table) -> list[str]:
    """Return the attributes of the cells of each column; a style can be appended."""
    rows = _full_rows(table)
    longest = [max((len(row.cells[i]) for row in rows), default=0) for i in range(len(table.headings))]
    words = css.WORDS_CELL if _has_names(table) else css.WRAPPED_CELL
    wrapped = {heading: words for heading, most in zip(table.headings, longest, strict=True) if most > _MAX_SHORT}
    known = {heading: wrapped.get(heading, css.CELL) for heading in WRAPPED} | dict.fromkeys(RIGHT, css.RIGHT_CELL)
    styles = [known.get(heading, css.CELL) for heading in table.headings]
    if _has_names(table) and longest[0] > _MAX_WHOLE:
        styles[0] = css.NAME_CELL
    return [f' style="{style}' for style in styles]


def _row_html(row: TableRow, kinds: list[str], *, has_names: bool) -> str:
    group = f";{css.GROUP}" if row.begins_group else ""
    indent = f";padding-left:{_INDENT_PX * row.level}px" if row.level else ""
    opened = f'<tr style="{css.QUIET_ROW}">' if row.is_quiet else "<tr>"
    if len(row.cells) < len(kinds):
        cell = escape(row.cells[0])
        return f'{opened}<td colspan="{len(kinds)}" style="{css.WRAPPED_CELL}{indent}{group}">{cell}</td></tr>'
    said = name_html if has_names else escape
    inside = [cell.html if isinstance(cell, Drawn) else said(cell) for cell in row.cells]
    if row.alarm:
        inside[0] += f' <span style="{css.ALARM_TEXT}">{escape(row.alarm)}</span>'
        kinds = [f"{kinds[0]};white-space:normal", *kinds[1:]] if has_names else kinds
    # A screen reader says the name of the row in each column.
    tags = [('th scope="row"', "th") if row.cells[0] else ("td", "td"), *[("td", "td")] * len(kinds[1:])]
    kinds = [f"{kinds[0]};font-weight:400{indent}", *kinds[1:]]
    cells = (
        f'<{tag}{kind}{group}">{cell}</{end}>' for (tag, end), cell, kind in zip(tags, inside, kinds, strict=False)
    )
    return opened + "".join(cells) + "</tr>"


def name_html(name: str) -> str:
    """Return a name as HTML that may break after its parts; a short one stays whole."""
    return "<wbr>".join(map(escape, _BREAKS.split(name))) if len(name) > _MAX_WHOLE else escape(name)

"""The one table: aligned text that is as wide as a terminal shows it, and static HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from tensornp.render.style import CELL, GROUP, TABLE


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row.

    Attributes
    ----------
    cells : tuple of str
        As many as the table has headings; or one, which stands across all columns.
    titles : tuple of str
        The sentences behind the cells, empty where there is none.
    begins_group : bool
        Whether a line divides it from the row above.
    """

    cells: tuple[str, ...]
    titles: tuple[str, ...] = ()
    begins_group: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Headings, and rows under them."""

    headings: tuple[str, ...]
    rows: tuple[TableRow, ...]


def without_empty(table: Table, num_kept: int) -> Table:
    """Return the table without those columns in which nothing is said; the first `num_kept` stay."""
    used = [i for i in range(len(table.headings)) if i < num_kept or any(row.cells[i] for row in table.rows)]
    rows = tuple(
        TableRow(tuple(row.cells[i] for i in used), tuple(row.titles[i] for i in used), row.begins_group)
        for row in table.rows
    )
    return Table(tuple(table.headings[i] for i in used), rows)


def table_text(table: Table) -> str:
    """Return the table as lines of text, its columns aligned."""
    lines = [table.headings, *(row.cells for row in table.rows)]
    columns = zip(*(cells for cells in lines if len(cells) == len(table.headings)), strict=True)
    widths = [max(map(_width, column)) for column in columns]
    return "\n".join(_aligned(cells, widths) if len(cells) == len(widths) else cells[0] for cells in lines)


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def _width(text: str) -> int:
    """Return how many columns of a terminal `text` takes: Chinese characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    # It has no width for control characters; names have none left.
    width = wcswidth(text)
    return width if width >= 0 else len(text)


def table_html(table: Table) -> str:
    """Return the table as static HTML."""
    head = "".join(f'<th scope="col" style="{CELL}">{escape(heading)}</th>' for heading in table.headings)
    body = "".join(_row_html(row, len(table.headings)) for row in table.rows)
    return f'<table style="{TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _row_html(row: TableRow, num_columns: int) -> str:
    style = f"{CELL};{GROUP}" if row.begins_group else CELL
    if len(row.cells) < num_columns:
        return f'<tr><td colspan="{num_columns}" style="{style}">{escape(row.cells[0])}</td></tr>'
    titles = row.titles or ("",) * num_columns
    cells = (
        f'<td style="{style}">{escape(cell)}</td>'
        if not title
        else f'<td title="{escape(title)}" style="{style}">{escape(cell)}</td>'
        for cell, title in zip(row.cells, titles, strict=True)
    )
    return "<tr>" + "".join(cells) + "</tr>"

"""The rows of a live tree as HTML, which the page places, folds and moves through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from tensornp.render.layout.table import html_of


class TreeColumn(NamedTuple):
    """A column: `width` in characters is its least on a wide page; pages under `least_px` hide it."""

    name: str
    heading: str
    width: int
    is_right: bool = False
    is_sortable: bool = False
    is_large_first: bool = False
    least_px: int = 0


class TreeLink(NamedTuple):
    """An alarm next to a name: a button that opens the item `number` at a goal.

    Narrow pages hide `place`, which stands behind the text.
    """

    text: str
    title: str
    number: int
    goal: str = ""
    place: str = ""


class TreeRow(NamedTuple):
    """One row: `number` opens in the panel, -1 for none; `is_open` is None without rows below.

    The first column shows `label`, `beside` and `link`.
    """

    id: int
    level: int
    label: str
    cells: Mapping[str, str]
    title: str = ""
    beside: str = ""
    link: TreeLink | None = None
    number: int = -1
    is_open: bool | None = None
    is_quiet: bool = False


def head_html(columns: Sequence[TreeColumn]) -> str:
    """Return the headings, with a button in each that sorts."""
    html = []
    for column in columns:
        inside, name = escape(column.heading), escape(column.name)
        if column.is_sortable:
            large = ' data-large=""' if column.is_large_first else ""
            inside = f'<button type="button" class="tensornp-sort" name="{name}"{large}>{inside}</button>'
        html.append(f'<th scope="col"{_class(column)} style="min-width:min({column.width}ch,28cqi)">{inside}</th>')
    return "".join(html)


def _class(column: TreeColumn, more: str = "") -> str:
    words = (
        ["tensornp-right"] * column.is_right
        + [f"tensornp-from-{column.least_px}"] * bool(column.least_px)
        + [more] * bool(more)
    )
    return f' class="{" ".join(words)}"' if words else ""


def note_html(text: str, level: int, columns: Sequence[TreeColumn]) -> str:
    """Return a row with a text across all columns."""
    cell = f'<td colspan="{len(columns)}" class="tensornp-rest">{escape(text)}</td>'
    return f'<tr role="row" aria-level="{level}">{cell}</tr>'


def row_html(row: TreeRow, columns: Sequence[TreeColumn]) -> str:
    """Return a row as HTML; all texts are escaped."""
    expanded = "" if row.is_open is None else f' aria-expanded="{str(row.is_open).lower()}"'
    number = f' data-number="{row.number}"' if row.number >= 0 else ""
    quiet = ' class="tensornp-quiet"' if row.is_quiet else ""
    cells = _name_html(row) + "".join(_cell_html(row, column) for column in columns[1:])
    return (
        f'<tr role="row" tabindex="-1" data-id="{row.id}" aria-level="{row.level}"{expanded}{number}{quiet}'
        f' title="{escape(row.title)}">{cells}</tr>'
    )


def _name_html(row: TreeRow) -> str:
    beside = f'<bdi class="tensornp-class-name">{escape(row.beside)}</bdi>' if row.beside else ""
    return (
        f'<td role="rowheader"><div class="tensornp-name-box" style="--tensornp-level:{row.level - 1}">'
        f'<span class="tensornp-mark" aria-hidden="true"></span>'
        f'<bdi dir="ltr" class="tensornp-name-text">{escape(row.label)}</bdi>{beside}{_link_html(row.link)}</div></td>'
    )


def _link_html(link: TreeLink | None) -> str:
    if link is None:
        return ""
    place = f'<span class="tensornp-from-700">{escape(link.place)}</span>' if link.place else ""
    return (
        f'<button type="button" tabindex="-1" class="tensornp-copy tensornp-link tensornp-alarm" '
        f'data-target="{link.number}" data-goal="{link.goal}" title="{escape(link.title)}">{escape(link.text)}{place}'
        "</button>"
    )


def _cell_html(row: TreeRow, column: TreeColumn) -> str:
    words = "" if column.is_right else f"tensornp-{column.name}"
    return f"<td{_class(column, words)}>{html_of(row.cells.get(column.name, ''))}</td>"

"""The table of all tensors and arrays, as text and as static HTML."""

from __future__ import annotations

from html import escape

from tensornp.core.summary.census import Census, CensusGroup, CensusRow
from tensornp.render.badges import format_nbytes

HEADINGS = ("name", "shape", "dtype", "device", "bytes", "shared with", "pinned by", "changed")
MAX_PINS = 6
_CELL = "padding:1px 12px 1px 0;text-align:left;white-space:nowrap;font-size:90%"
_LINE = "border-top:1px solid rgba(128,128,128,.25)"


def census_heading(census: Census) -> str:
    """Return the line over the table: how many, and how many bytes on each device, each storage counted once."""
    arrays = f" and {_count(census.num_arrays, 'array')}" if census.num_arrays else ""
    where = f"{_count(census.num_tensors, 'tensor')}{arrays} in {_count(census.num_storages, 'storage')}"
    totals = [f"{device} {format_nbytes(nbytes)}" for device, nbytes in census.totals.items()]
    return " | ".join([where, *totals, *([census.stopped] if census.stopped else [])])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def left_out_text(census: Census) -> str:
    """Return what the table leaves out, and how to see it; empty where it shows everything."""
    if not census.num_left_out:
        return ""
    return (
        f"… {census.num_left_out:,} more left out; name some (%tensors model.*), "
        "or let %config TensorDisplay.max_rows show more"
    )


def row_cells(group: CensusGroup, row: CensusRow) -> tuple[str, ...]:
    """Return what the columns of `HEADINGS` say; what pins a storage stands in the first row of its group."""
    is_first = row is group.rows[0]
    # A small view may be all that is left of a large storage, and keeps the whole of it.
    whole = f" of {format_nbytes(group.nbytes)}" if is_first and group.nbytes > row.nbytes else ""
    name = row.name if row.kind != "array" else f"{row.name} (NumPy array)"
    return (
        name if is_first else f"└ {name}",
        str(row.shape).replace("-1", "?") if row.shape is not None else "",
        row.dtype,
        row.device,
        format_nbytes(row.nbytes) + whole,
        row.shared_with,
        _pins_text(group.pinned_by) if is_first else "",
        row.change.text if row.change is not None else "",
    )


def _pins_text(pins: tuple[str, ...]) -> str:
    """Return the first of what pins a storage, and how many more: each display of a tensor adds one."""
    left = len(pins) - MAX_PINS
    return ", ".join(pins[:MAX_PINS]) + (f" and {left:,} more" if left > 0 else "")


def _used(census: Census) -> list[int]:
    """Return which columns say anything: the last three are shown where one of their cells does."""
    rows = [row_cells(group, row) for group in census.groups for row in group.rows]
    return [i for i in range(len(HEADINGS)) if i < 5 or any(cells[i] for cells in rows)]


def census_text(census: Census) -> str:
    """Return the aligned table under its heading."""
    if not census.groups:
        return "no tensor or array here"
    columns = _used(census)
    rows = [row_cells(group, row) for group in census.groups for row in group.rows]
    table = [[cells[i] for i in columns] for cells in (HEADINGS, *rows)]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(columns))]
    lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]
    return "\n".join(filter(None, [census_heading(census), *lines, left_out_text(census)]))


def census_html(census: Census, anchor: str = "") -> str:
    """Return the census as a static table; `anchor` is the class by which a live view finds and sorts that table.

    The exact bytes stand in the titles of their cells.
    """
    if not census.groups:
        return f'<div class="tensornp {escape(anchor)}">no tensor or array here</div>'
    columns = _used(census)
    head = "".join(f'<th scope="col" style="{_CELL}">{HEADINGS[i]}</th>' for i in columns)
    body = "".join(_row(group, row, columns) for group in census.groups for row in group.rows)
    left_out = f"<small>{escape(left_out_text(census))}</small>" if census.num_left_out else ""
    return (
        f'<div class="tensornp {escape(anchor)}" style="overflow:auto;padding:4px 0 2px;line-height:1.9">'
        f"<div>{escape(census_heading(census))}</div>"
        f'<table style="border-collapse:collapse;margin:4px 0"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{left_out}</div>"
    )


def _row(group: CensusGroup, row: CensusRow, columns: list[int]) -> str:
    cells = row_cells(group, row)
    line = f";{_LINE}" if row is group.rows[0] else ""
    inner = "".join(
        f'<td title="{escape(_title(row, i))}" style="{_CELL}{line}">{escape(cells[i])}</td>' for i in columns
    )
    return f"<tr>{inner}</tr>".replace(' title=""', "")


def _title(row: CensusRow, column: int) -> str:
    if column == 0:
        return row.kind
    if column == 4:
        return f"{row.nbytes:,} bytes"
    return row.change.sentence if column == 7 and row.change is not None else ""

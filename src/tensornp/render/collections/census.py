"""The table of all tensors and arrays."""

from __future__ import annotations

from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.core.summary.census import Census, CensusGroup, CensusRow
from tensornp.render.layout.document import Document, fold, headline, section, small_print
from tensornp.render.layout.table import Table, TableRow, only, rows_html, said_once, without_common, without_empty
from tensornp.render.layout.words import listed

HEADINGS = ("name", "shape", "dtype", "device", "bytes", "shared with", "kept alive by")
ALWAYS = ("name", "shape", "dtype", "device", "bytes")
"""Columns that are shown whatever they say; the others where one of their cells says anything."""
COMMON = ("dtype", "device")
"""Columns that stand in the heading where they are equal in all rows."""
_BELOW = "└ "
"""Before the names in a group but the first."""
MAX_LISTED = 16
"""Rows up to which all tensors are listed; of more, each variable is a line above a fold."""
MAX_GRAPHS = 3
"""Tensors with a graph that are named."""
MAX_HOLDERS = 6
"""Names that keep a storage alive in a cell; each display of a tensor adds one."""


def census_document(census: Census, max_rows: int = 0) -> Document:
    """Return the table with up to `max_rows` rows, 0 for all."""
    if not census.groups:
        return Document((headline("no tensor or array here"),))
    every, common = _table(census)
    shown = census.abridged(max_rows) if max_rows else census
    left_out = ""
    if shown.num_left_out:
        cure = "name some (%tensors model.*), or let %config TensorDisplay.max_rows show more"
        left_out = f"… {shown.num_left_out:,} more left out; {cure}"
    below = section("tensornp-left-out", (small_print(left_out),))
    graphs = listed(census.with_graph, MAX_GRAPHS)
    uncounted = small_print(f"not counted: what the graphs of {graphs} saved for backward" if graphs else "")
    full = only(_full_table(shown), every.headings)
    heading = headline(_heading(census, common))
    if len(census.groups) <= MAX_LISTED or len(census.variables) == len(census.groups):
        return Document((heading, full, below, uncounted))
    lines = census.variables[: max_rows or None]
    rows = [TableRow((one.name, one.what, format_nbytes(one.nbytes))) for one in lines]
    names = counted(sum(len(group.rows) for group in census.groups), "name")
    which = "the largest" if census.num_left_out else "all"
    below = fold(f"{which} {names}", (full, below), f"%tensors {lines[0].name} lists its tensors")
    return Document((heading, Table(("name", "what", "bytes"), tuple(rows)), below, uncounted))


def census_rows(census: Census) -> tuple[str, list[str]]:
    """Return all rows as HTML in the columns of the document, and their names, for a page that sorts them."""
    table, _ = _table(census)
    every = [row for group in census.groups for row in group.rows]
    # Without the marks of a group.
    plain = [
        row._replace(cells=(row.cells[0].removeprefix(_BELOW), *row.cells[1:]), begins_group=False)
        for row in table.rows
    ]
    html = rows_html(table._replace(rows=tuple(plain)), table, [{"bytes": row.nbytes} for row in every])
    return html, [row.cells[0] for row in plain]


def _heading(census: Census, common: tuple[str, ...]) -> str:
    arrays = f" and {counted(census.num_arrays, 'array')}" if census.num_arrays else ""
    where = f"{counted(census.num_tensors, 'tensor')}{arrays}"
    totals = [f"{device} {format_nbytes(nbytes)}" for device, nbytes in census.totals.items()]
    owners = [f"{owner} {format_nbytes(nbytes)}" for owner, nbytes in census.owners.items()]
    whose = [", ".join(owners)] if len(owners) > 1 else []
    whose += [f"the last error holds {format_nbytes(census.nbytes_of_error)} more"] if census.nbytes_of_error else []
    free = census.owners.get("Out[…]", 0) + census.nbytes_of_error
    whose += [f"%tensors --release frees {format_nbytes(free)}"] if free else []
    stopped = [census.stopped] if census.stopped else []
    is_whole = not census.num_left_out
    # The totals name the device already.
    told = tuple(text for text in common if not (is_whole and text in census.totals))
    return " · ".join([where, *totals, *whose, *said_once(told, is_whole=is_whole), *stopped])


def _table(census: Census) -> tuple[Table, tuple[str, ...]]:
    return without_common(without_empty(_full_table(census), ALWAYS), COMMON)


def _full_table(census: Census) -> Table:
    rows = tuple(
        TableRow(_cells(group, row), begins_group=row is group.rows[0]) for group in census.groups for row in group.rows
    )
    return Table(HEADINGS, rows)


def _cells(group: CensusGroup, row: CensusRow) -> tuple[str, ...]:
    """Return the cells of a row; the first of a group names all that keeps it alive."""
    is_first = row is group.rows[0]
    # A small view may be all that is left of a large storage, and keeps the whole of it.
    whole = f" of {format_nbytes(group.nbytes)}" if is_first and group.nbytes > row.nbytes else ""
    name = row.name if row.kind != "array" else f"{row.name} (NumPy array)"
    return (
        name if is_first else f"{_BELOW}{name}",
        str(row.shape).replace("-1", "?") if row.shape is not None else "",
        row.dtype,
        row.device,
        format_nbytes(row.nbytes) + whole,
        row.shared_with,
        listed(group.kept_by, MAX_HOLDERS) if is_first else "",
    )

"""The table of a container: its leaves by name, under a heading, as text and as static HTML."""

from __future__ import annotations

from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.core.summary.container import ContainerSummary, Row
from tensornp.core.values.stats.record import alarm_text
from tensornp.render.layout.document import Document, headline
from tensornp.render.layout.table import Table, TableRow, said_once, without_common, without_empty
from tensornp.render.layout.words import on_this_rank
from tensornp.render.tensor.badges import badges_of, memory_word

HEADINGS = ("name", "shape", "dtype", "device", "bytes", "grad", "array", "values")
COMMON = ("dtype", "device", "grad", "array")
"""Columns that stand in the heading where they are equal in all rows."""


def container_document(summary: ContainerSummary) -> Document:
    table, common = _table(summary)
    return Document((headline(_heading(summary, common)), table))


def _heading(summary: ContainerSummary, common: tuple[str, ...]) -> str:
    at_least = "" if summary.is_complete else "at least "
    arrays = f"{at_least}{counted(summary.num_arrays, 'array')}" if summary.num_arrays else ""
    tensors = f"{at_least}{counted(summary.num_tensors, 'tensor')}" if summary.num_tensors or not arrays else ""
    num_leaves = len(summary.rows) + summary.num_left_out
    is_flat = summary.is_complete and summary.length == num_leaves in (summary.num_tensors, summary.num_arrays)
    what = " · ".join(filter(None, ["" if is_flat and num_leaves else f"{summary.length:,}", tensors, arrays]))
    nbytes = at_least + format_nbytes(summary.nbytes)
    said = [
        f"{summary.type_name} of {what}",
        nbytes,
        *said_once(common, is_whole=summary.is_complete and not summary.num_left_out),
    ]
    return " · ".join(filter(None, said))


def _table(summary: ContainerSummary) -> tuple[Table, tuple[str, ...]]:
    rows = []
    for row in summary.rows:
        held = row.array or row.tensor
        alarm = alarm_text(held.stats) if held is not None else ""
        rows.append(TableRow(_cells(row), has_facts=held is not None, alarm=alarm))
    if summary.num_left_out:
        left_out = f"… {summary.num_left_out:,} more left out; %config TensorDisplay.max_rows sets how many are shown"
        rows.insert(summary.num_first, TableRow((left_out,)))
    full = without_empty(Table(HEADINGS, tuple(rows)), HEADINGS[:3])
    table, common = without_common(full, COMMON)
    if COMMON[-1] in full.headings and COMMON[-1] not in table.headings:
        # Each of the other words explains itself.
        *others, array = common
        common = (*others, f"{COMMON[-1]} {array}")
    return table, common


def _cells(row: Row) -> tuple[str, ...]:
    summary = row.tensor
    if row.array is not None:
        array = row.array
        return (row.name, str(array.shape), array.dtype, "", format_nbytes(array.nbytes), "", "", row.text)
    if summary is None:
        return (row.name, "", "", "", "", "", "", row.text)
    by_kind = {badge.kind: badge.text for badge in badges_of(summary)}
    nbytes, info = "", summary.info
    if info is not None:
        here = on_this_rank(format_nbytes(info._nbytes_here)) if info._numel_elsewhere else ""
        nbytes = format_nbytes(info._held_nbytes) + here
    facts = (by_kind.get(kind, "") for kind in ("shape", "dtype", "device"))
    # An item that is no leaf says its source.
    grad = by_kind.get("grad", "")
    return (row.name, *facts, nbytes, grad, memory_word(summary), row.text or summary.refusal)

"""The table of a container: its leaves by name, under a heading, as text and as static HTML."""

from __future__ import annotations

from html import escape

from tensornp.core.summary.card import ContainerSummary, Row
from tensornp.render.badges import badges_of, memory_word
from tensornp.render.style import WIDE
from tensornp.render.table import Table, TableRow, table_html, table_text
from tensornp.render.words import counted, format_nbytes

HEADINGS = ("name", "shape", "dtype", "device", "grad", "memory", "values")


def container_text(summary: ContainerSummary) -> str:
    """Return the heading over the aligned table."""
    return f"{_heading(summary)}\n{table_text(_table(summary))}"


def container_html(summary: ContainerSummary) -> str:
    """Return the heading over the compact table."""
    heading = f"<div>{escape(_heading(summary))}</div>"
    return f'<div class="tensornp" style="{WIDE}">{heading}{table_html(_table(summary))}</div>'


def _heading(summary: ContainerSummary) -> str:
    """Return what it is, how many tensors it holds, and how many bytes."""
    at_least = "" if summary.is_complete else "at least "
    tensors = counted(summary.num_tensors, "tensor")
    nbytes = ("" if summary.is_measured else "at least ") + format_nbytes(summary.nbytes)
    return f"{summary.type_name} of {summary.length:,} | {at_least}{tensors} | {nbytes}"


def _table(summary: ContainerSummary) -> Table:
    rows = [TableRow(_cells(row)) for row in summary.rows]
    if summary.num_left_out:
        left_out = f"… {summary.num_left_out:,} more left out; %config TensorDisplay.max_rows sets how many are shown"
        rows.insert(summary.num_first, TableRow((left_out,)))
    return Table(HEADINGS, tuple(rows))


def _cells(row: Row) -> tuple[str, ...]:
    summary = row.tensor
    if summary is None:
        return (row.name, "", "", "", "", "", row.text)
    by_kind = {badge.kind: badge.text for badge in badges_of(summary)} | {"memory": memory_word(summary.plan)}
    values = row.text or summary.refusal
    return (row.name, *(by_kind.get(kind, "") for kind in HEADINGS[1:-1]), values)

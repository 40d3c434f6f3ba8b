"""Summaries as plain text, complete by itself: what a terminal shows."""

from __future__ import annotations

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.summary.card import ContainerSummary, Row, TensorSummary
from tensornp.core.summary.surroundings import NOWHERE, Surroundings
from tensornp.core.tensor.dtypes import name_of
from tensornp.render.badges import badges_of, format_nbytes, memory_word
from tensornp.render.memory import memory_lines, stopped_text


def tensor_text(summary: TensorSummary) -> str:
    """Return the badges in one line over the array, or over the reason why there is none."""
    badges = " | ".join(badge.text for badge in badges_of(summary))
    around = summary.surroundings
    facts = "\n".join(filter(None, [badges, *(line.text for line in memory_lines(around)), stopped_text(around)]))
    if summary.preview is None:
        return f"{facts}\n{summary.refusal}"
    note = f"({summary.preview.note})" if summary.preview.note else ""
    return "\n".join(filter(None, (facts, summary.preview.text, note)))


def tensor_line(summary: TensorSummary) -> str:
    """Return a tensor in a few words, for one that is printed inside something else."""
    if summary.info is None:
        return f"<{summary.type_name}>"
    info = summary.info
    return f"<{info.type_name} {info.shape} {name_of(info.dtype)} {info.device}>"


def receipt_text(plan: ConversionPlan) -> str:
    """Return the line of plain code that does the same, and under it what was done and why."""
    copied = "" if plan.shares_memory else f" ({plan.nbytes_copied:,} bytes, {exactness(plan)})"
    return "\n  ".join([f"{plan.mode}: {plan.code}", plan.reason + copied, *(f"note: {w}" for w in plan.warnings)])


def receipts_text(plans: list[ConversionPlan]) -> str:
    """Return one line that says what the conversion of a whole container did."""
    copied = [plan for plan in plans if not plan.shares_memory]
    nbytes = sum(plan.nbytes_copied for plan in copied)
    lossy = sum(not plan.exact for plan in plans)
    parts = [f"{len(plans) - len(copied)} share memory", f"{len(copied)} copied ({nbytes:,} bytes)"]
    parts += [f"{lossy} lossy"] if lossy else []
    return f"{len(plans)} tensors: {', '.join(parts)}"


def receipt_lines(plan: ConversionPlan, around: Surroundings = NOWHERE) -> list[str]:
    """Return what the folded receipt says, a line each, and where the search around the tensor was not through."""
    lines = [f"{plan.dtype} · {exactness(plan)} · {plan.nbytes_copied:,} bytes copied", plan.reason]
    lines += [f"steps: {', '.join(plan.steps)}"] if plan.steps else []
    lines += [f"note: {warning}" for warning in plan.warnings]
    return lines + ([stopped_text(around)] if around.stopped else [])


def exactness(plan: ConversionPlan) -> str:
    """Return "exact" or "lossy"."""
    return "exact" if plan.exact else "lossy"


HEADINGS = ("name", "shape", "dtype", "device", "grad", "memory", "values")


def row_cells(row: Row) -> tuple[str, ...]:
    """Return what the columns of `HEADINGS` say of one leaf."""
    summary = row.tensor
    if summary is None:
        return (row.name, "", "", "", "", "", row.text)
    by_kind = {badge.kind: badge.text for badge in badges_of(summary)} | {"memory": memory_word(summary.plan)}
    values = row.text or summary.refusal
    return (row.name, *(by_kind.get(kind, "") for kind in HEADINGS[1:-1]), values)


def container_heading(summary: ContainerSummary) -> str:
    """Return the line over the table: what it is, how many tensors, how many bytes."""
    at_least = "" if summary.is_complete else "at least "
    tensors = "1 tensor" if summary.num_tensors == 1 else f"{summary.num_tensors:,} tensors"
    return f"{summary.type_name} of {summary.length:,} | {at_least}{tensors} | {format_nbytes(summary.nbytes)}"


def left_out_text(summary: ContainerSummary) -> str:
    """Return what the table leaves out, and how to see more of it; empty where it shows everything."""
    if not summary.num_left_out:
        return ""
    return f"… {summary.num_left_out:,} more left out; %config TensorDisplay.max_rows sets how many are shown"


def container_text(summary: ContainerSummary) -> str:
    """Return an aligned table of the leaves under a heading."""
    table = [HEADINGS, *(row_cells(row) for row in summary.rows)]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(HEADINGS))]
    lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]
    if summary.num_left_out:
        lines.insert(1 + len(summary.rows) - _num_tail(summary), left_out_text(summary))
    return "\n".join([container_heading(summary), *lines])


def _num_tail(summary: ContainerSummary) -> int:
    return len(summary.rows) // 4

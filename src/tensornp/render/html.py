"""Summaries as static HTML: inline styles without text colours, so that one form serves every theme and sanitizer."""

from __future__ import annotations

from html import escape

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.summary.card import ContainerSummary, TensorSummary
from tensornp.core.summary.surroundings import NOWHERE, Surroundings
from tensornp.render.badges import Badge, Tone, badges_of
from tensornp.render.memory import MemoryLine, memory_lines, stopped_text
from tensornp.render.text import HEADINGS, container_heading, left_out_text, receipt_lines, row_cells

_RGB: dict[Tone, str] = {
    "plain": "128,128,128",
    "shared": "22,163,74",
    "copied": "217,119,6",
    "grad": "124,58,237",
    "refused": "220,38,38",
}
_BADGE = (
    "display:inline-block;padding:1px 8px;border-radius:9px;font-size:85%;line-height:1.5;white-space:nowrap;"
    "background-color:rgba({},{})"
)
_PRE = "margin:6px 0 4px;padding:0;background-color:transparent;overflow:auto;font-family:monospace;line-height:1.3"
_CARD = "padding:4px 0 2px;line-height:1.9"
_CODE = "padding:0;background-color:transparent"
_CELL = "padding:1px 12px 1px 0;text-align:left;white-space:nowrap;font-size:90%"


def tensor_html(summary: TensorSummary, *, receipt: str = "folded", anchor: str = "") -> str:
    """Return the card: a row of badges, the array, and the receipt folded under it.

    `anchor` is a class by which a live toggle finds this card; `receipt` is "folded", "open" or "hidden".
    """
    badges = " ".join(_badge(badge) for badge in badges_of(summary))
    if summary.preview is not None:
        note = f"<small>{escape(summary.preview.note)}</small>" if summary.preview.note else ""
        body = f'<pre style="{_PRE}">{escape(summary.preview.text)}</pre>{note}' if summary.preview.text else note
    else:
        body = f'<div style="{_PRE}">{escape(summary.refusal)}</div>'
    around = summary.surroundings
    memory = "".join(map(_memory_line, memory_lines(around)))
    if summary.plan is not None and receipt != "hidden":
        body += _receipt(summary.plan, around, is_open=receipt == "open")
    elif around.stopped:
        memory += _memory_line(MemoryLine(stopped_text(around), ()))
    return f'<div class="tensornp {escape(anchor)}" style="{_CARD}"><div>{badges}</div>{memory}{body}</div>'


def _memory_line(line: MemoryLine) -> str:
    names = ", ".join(
        f'<span title="{escape(title)}"><code style="{_CODE}">{escape(name)}</code>{escape(beside)}</span>'
        for name, beside, title in line.names
    )
    return f'<div style="font-size:90%;line-height:1.5">{escape(line.words)} {names}{escape(line.rest)}</div>'


def _badge(badge: Badge) -> str:
    style = _BADGE.format(_RGB[badge.tone], ".13" if badge.tone == "plain" else ".2")
    return f'<span title="{escape(badge.title)}" style="{style}">{escape(badge.text)}</span>'


def _receipt(plan: ConversionPlan, around: Surroundings, *, is_open: bool) -> str:
    text = "<br>".join(escape(line) for line in receipt_lines(plan, around))
    code = f'<code style="background-color:transparent">{escape(plan.code)}</code>'
    # What a write could spoil is not folded away.
    has_hazard = plan.shares_memory and plan.writeable and plan.warnings
    opened = " open" if is_open or has_hazard else ""
    return f'<details{opened} style="font-size:90%"><summary>{plan.mode} · {code}</summary>{text}</details>'


def receipt_html(plan: ConversionPlan) -> str:
    """Return the receipt of a conversion that was done, as one line that unfolds."""
    return f'<div class="tensornp" style="{_CARD}">{_receipt(plan, NOWHERE, is_open=False)}</div>'


def container_html(summary: ContainerSummary) -> str:
    """Return a compact table of the leaves under a heading."""
    lines = [_table_row("th", HEADINGS)]
    tail = len(summary.rows) // 4 if summary.num_left_out else 0
    rows = [_table_row("td", row_cells(row)) for row in summary.rows]
    if summary.num_left_out:
        gap = f'<tr><td colspan="{len(HEADINGS)}" style="{_CELL}">{escape(left_out_text(summary))}</td></tr>'
        rows.insert(len(rows) - tail, gap)
    heading = f"<div>{escape(container_heading(summary))}</div>"
    table = f'<table style="border-collapse:collapse;margin:4px 0">{"".join(lines + rows)}</table>'
    return f'<div class="tensornp" style="overflow:auto;{_CARD}">{heading}{table}</div>'


def _table_row(tag: str, cells: tuple[str, ...]) -> str:
    inner = "".join(f'<{tag} style="{_CELL}">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"

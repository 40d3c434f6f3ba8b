"""The card of a tensor: as plain text, complete by itself, and as static HTML."""

from __future__ import annotations

from html import escape

from tensornp.core.summary.card import TensorSummary
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.dtypes import name_of
from tensornp.render.layout.style import CARD, CODE, PRINTED, REFUSAL, ROW, ROW_ARRAY, SMALL, array_style
from tensornp.render.pictures.stats_line import stats_line_html, stats_line_text
from tensornp.render.tensor.aliases import MemoryLine, folded_lines, memory_lines, stopped_text
from tensornp.render.tensor.badges import badge_html, badges_of
from tensornp.render.tensor.receipt import folded_receipt, receipt_of


def tensor_text(summary: TensorSummary) -> str:
    """Return the badges in one line over the array, or over the reason why there is none."""
    badges = " | ".join(badge.text for badge in badges_of(summary))
    around = summary.surroundings
    figures = [stats_line_text(summary.stats, summary.info)] if summary.stats is not None else []
    facts = [*(line.text for line in memory_lines(around)), *([stopped_text(around)] if around.stopped else [])]
    if summary.preview is None:
        return "\n".join([badges, *facts, summary.refusal])
    note = [f"({summary.preview.note})"] if summary.preview.note else []
    if summary.style == "line":
        return "\n".join([f"{badges} | {summary.preview.text}", *facts, *note])
    return "\n".join([badges, *facts, *filter(None, [summary.preview.text]), *note, *filter(None, figures)])


def tensor_line(summary: TensorSummary) -> str:
    """Return a tensor in a few words, for one that is printed inside something else."""
    if summary.info is None:
        return f"<{summary.type_name}>"
    info = summary.info
    device = "" if str(info.device) == "cpu" else f" {info.device}"
    values = f": {summary.preview.text}" if summary.preview is not None and summary.preview.text else ""
    return f"<{info.type_name} {info.shape} {name_of(info.dtype)}{device}{values}>"


def tensor_html(summary: TensorSummary, options: DisplayOptions, *, anchor: str = "") -> str:
    """Return the card: a row of badges, the array, and the receipt folded under it; or badges and values in a row.

    `anchor` is a class by which a live toggle finds this card.
    """
    badges = f"<div>{' '.join(map(badge_html, badges_of(summary)))}</div>"
    around, is_row = summary.surroundings, summary.style != "card"
    memory = "".join(map(_memory_line, memory_lines(around)))
    receipt = ""
    if summary.plan is None or options.receipt == "hidden":
        memory += "".join(_memory_line(MemoryLine(text, ())) for text in folded_lines(around))
    else:
        receipt = folded_receipt(receipt_of(summary), is_open=options.receipt == "open", is_short=is_row)
    values = _values(summary, options)
    if summary.stats is not None:
        values += stats_line_html(summary.stats, summary.info, has_picture=options.pictures == "small")
    inside = f"{badges}{values}{receipt}{memory}" if is_row else f"{badges}{memory}{values}{receipt}"
    return f'<div class="tensornp {escape(anchor)}" style="{ROW if is_row else CARD}">{inside}</div>'


def _values(summary: TensorSummary, options: DisplayOptions) -> str:
    """Return the array in a box of bounded height, or the reason why there is none."""
    if summary.preview is None:
        return values_html("", summary.refusal, options.max_height)
    array = values_html(summary.preview.text, "", options.max_height, is_row=summary.style != "card")
    return array + (f"<small>{escape(summary.preview.note)}</small>" if summary.preview.note else "")


def values_html(text: str, refusal: str, max_height: int, *, is_row: bool = False) -> str:
    """Return an array in a box of so many lines, or the reason why there is none."""
    if not text:
        return f'<div style="{REFUSAL}">{escape(refusal)}</div>' if refusal else ""
    # What scrolls can be reached by keyboard.
    is_bounded = text.count("\n") >= max_height > 0
    focusable, printed = (' tabindex="0"', PRINTED) if is_bounded else ("", "")
    return f'<pre{focusable} style="{ROW_ARRAY if is_row else array_style(max_height)}">{escape(text)}</pre>{printed}'


def _memory_line(line: MemoryLine) -> str:
    names = ", ".join(
        f'<span title="{escape(title)}"><code style="{CODE}">{escape(name)}</code>{escape(beside)}</span>'
        for name, beside, title in line.names
    )
    return f'<div style="{SMALL}">{escape(line.words)} {names}{escape(line.rest)}</div>'

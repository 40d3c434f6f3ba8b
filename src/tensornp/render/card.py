"""The card of a tensor: as plain text, complete by itself, and as static HTML."""

from __future__ import annotations

from html import escape

from tensornp.core.summary.card import TensorSummary
from tensornp.core.tensor.dtypes import name_of
from tensornp.render.aliases import MemoryLine, memory_lines, stopped_text
from tensornp.render.badges import Badge, badges_of
from tensornp.render.receipt import folded_receipt
from tensornp.render.style import ARRAY, CARD, CODE, SMALL, badge_style


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


def tensor_html(summary: TensorSummary, *, receipt: str = "folded", anchor: str = "") -> str:
    """Return the card: a row of badges, the array, and the receipt folded under it.

    `anchor` is a class by which a live toggle finds this card; `receipt` is "folded", "open" or "hidden".
    """
    badges = " ".join(_badge(badge) for badge in badges_of(summary))
    if summary.preview is not None:
        note = f"<small>{escape(summary.preview.note)}</small>" if summary.preview.note else ""
        body = f'<pre style="{ARRAY}">{escape(summary.preview.text)}</pre>{note}' if summary.preview.text else note
    else:
        body = f'<div style="{ARRAY}">{escape(summary.refusal)}</div>'
    around = summary.surroundings
    memory = "".join(map(_memory_line, memory_lines(around)))
    if summary.plan is not None and receipt != "hidden":
        body += folded_receipt(summary.plan, around, is_open=receipt == "open")
    elif around.stopped:
        memory += _memory_line(MemoryLine(stopped_text(around), ()))
    return f'<div class="tensornp {escape(anchor)}" style="{CARD}"><div>{badges}</div>{memory}{body}</div>'


def _memory_line(line: MemoryLine) -> str:
    names = ", ".join(
        f'<span title="{escape(title)}"><code style="{CODE}">{escape(name)}</code>{escape(beside)}</span>'
        for name, beside, title in line.names
    )
    return f'<div style="{SMALL}">{escape(line.words)} {names}{escape(line.rest)}</div>'


def _badge(badge: Badge) -> str:
    return f'<span title="{escape(badge.title)}" style="{badge_style(badge.tone)}">{escape(badge.text)}</span>'

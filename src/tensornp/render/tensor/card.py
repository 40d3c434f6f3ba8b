"""The cards of tensors, arrays and metadata: as plain text, complete by itself, and as static HTML."""

from __future__ import annotations

import dataclasses
import re
from html import escape

from tensornp.core.lowlevel.text import counted, format_nbytes, legible
from tensornp.core.summary.card import TensorSummary
from tensornp.core.summary.container import ArraySummary
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.values.stats.record import alarms_of, is_mask
from tensornp.render.layout import style as css
from tensornp.render.layout.document import Document, Part, parts_html
from tensornp.render.layout.table import Table, TableRow
from tensornp.render.pictures.stats_line import stats_line_html, stats_line_text
from tensornp.render.tensor.aliases import folded_lines, memory_lines, plain_line, stopped_text
from tensornp.render.tensor.badges import Badge, badge_html, badges_line, badges_of
from tensornp.render.tensor.receipt import card_receipt

MIN_FOLDED = 3
"""Lines beyond the height that are worth a fold."""
MAX_MARKED = 200
"""Values that are marked: of an array that is full of NaN, its badge says so."""
MAX_UNSCROLLED_WIDTH = 80
"""Characters of a line that fit into a page of 800 pixels."""
_NAN, _INF = (re.compile(rf"(?<![A-Za-z_])-?{word}j?(?!\w)") for word in ("nan", "inf"))


def tensor_text(summary: TensorSummary, max_height: int = 0) -> str:
    """Return the badges in one line over the array, or over the reason why there is none.

    It prints so many lines of the array, or all for 0.
    """
    badges = " | ".join([badge.text for badge in badges_of(summary)])
    around, is_row = summary.surroundings, summary.has_values_in_row
    figures = [stats_line_text(summary.stats, summary.info)] if summary.stats is not None and not is_row else []
    facts = [*[line.text for line in memory_lines(around)], *([stopped_text(around)] if around.stopped else [])]
    if summary.preview is None:
        return "\n".join([badges, *facts, summary.refusal, *filter(None, figures)])
    note = [f"({summary.preview.note})"] if summary.preview.note else []
    if summary.style == "line":
        beside = [summary.preview.text] if is_row else figures
        return "\n".join([" | ".join([badges, *filter(None, beside)]), *facts, *note])
    shown, _, more = folded_text(summary.preview.text, max_height)
    rest = [f"… {more}; %config TensorDisplay.max_height sets how many are shown"] if more else []
    array = [*shown, *rest] if summary.preview.text else []
    return "\n".join([badges, *facts, *array, *note, *filter(None, figures)])


def tensor_line(summary: TensorSummary) -> str:
    """Return a tensor in a few words, for one that is printed inside something else."""
    if summary.info is None:
        return f"<{summary.type_name}>"
    info = summary.info
    device = "" if str(info.device) == "cpu" else f" {info.device}"
    values = f": {summary.preview.text}" if summary.preview is not None and summary.preview.text else ""
    return f"<{info.type_name} {info.shape} {name_of(info.dtype)}{device}{values}>"


def tensor_html(summary: TensorSummary, options: DisplayOptions, *, anchor: str = "", is_live: bool = False) -> str:
    """Return the card: badges, figures and the receipt in a row, over the array.

    A short array stands in the row. `anchor` is a class by which a live toggle finds this card. In a live one, the
    badges of NaN and infinity are buttons that lead there.
    """
    around = summary.surroundings
    lines = memory_lines(around)
    has_receipt = summary.plan is not None and options.receipt != "hidden"
    if not has_receipt:
        lines += [plain_line(text) for text in folded_lines(around)]
    links = ("nan", "inf") if is_live and summary.preview is not None else ()
    badges = badges_of(summary)
    shown = " ".join([badge_html(one) for one in badges if one.kind not in links])
    alarms = " ".join([badge_html(one, is_link=True) for one in badges if one.kind in links])
    is_row = summary.has_values_in_row
    head = f"<span>{shown}</span>"
    if summary.stats is not None and not is_row:
        head += stats_line_html(summary.stats, summary.info, has_picture=options.has_pictures)
    if has_receipt:
        head = card_receipt(summary, badges, head, is_open=options.receipt == "open")
    if alarms:
        # A button must not stand in a summary, and leaves the fold in its place.
        head = f'<div style="{css.ALARMS}"><span>{alarms}</span><div>{head}</div></div>'
    if is_row or not has_receipt:
        head = f'<div style="{css.HEAD}">{head}{_values(summary, options) if is_row else ""}</div>'
    values = "" if is_row or summary.style == "line" else _values(summary, options)
    note = summary.preview.note if summary.preview is not None else ""
    if summary.info is not None and summary.info.grad_fn and not summary.info.shape:
        # A loss.
        has_alarms = summary.stats is not None and alarms_of(summary.stats)
        note = "%%follow --operators finds the line that made it" if has_alarms else note
    note = f"<small>{escape(note)}</small>" if note else ""
    inside = f"{head}{parts_html(lines)}{values}{note}"
    return f'<div class="tensornp {escape(anchor)}" dir="ltr" style="{css.CARD}">{inside}</div>'


def _values(summary: TensorSummary, options: DisplayOptions) -> str:
    is_quiet = summary.stats is not None and is_mask(summary.stats)
    text = summary.preview.text if summary.preview is not None else ""
    return values_html(text, summary.refusal, options.max_height, is_row=summary.style != "card", is_mask=is_quiet)


def values_html(text: str, refusal: str, max_height: int, *, is_row: bool = False, is_mask: bool = False) -> str:
    """Return the text of an array, folded after that many lines (0 shows all), or the refusal.

    In a row of badges it has no margin; of a mask, infinities are not marked.
    """
    if not text:
        return f'<div style="{css.REFUSAL}">{escape(refusal)}</div>' if refusal else ""
    lines, folded, more = folded_text(text, max_height)
    words = [word for word in (_NAN, *(() if is_mask else (_INF,))) if len(word.findall(text)) <= MAX_MARKED]
    # An area that scrolls can be reached by keyboard.
    is_wide = max(map(len, text.splitlines()), default=0) > MAX_UNSCROLLED_WIDTH
    focusable = ' tabindex="0"' if is_wide else ""
    pre = f'<pre{focusable} style="{css.ROW_ARRAY if is_row else css.ARRAY}">{_marked(lines, words)}</pre>'
    if not folded:
        return pre
    rest = f'<pre{focusable} style="{css.ARRAY}">{_marked(folded, words)}</pre>'
    fold = f'<details class="tensornp-more"><summary style="{css.LINES_FOLD}">{more}</summary>{rest}</details>'
    return pre + fold + css.PRINTED


def array_document(summary: ArraySummary, options: DisplayOptions) -> Document:
    """Return the badges in one line over the array, or over the reason why it is not printed."""
    badges = _badges(summary)
    values = values_html(summary.text, summary.refusal, options.max_height)
    return Document((badges_line(badges), Part(summary.text or summary.refusal, values)), css.CARD)


def _badges(summary: ArraySummary) -> list[Badge]:
    return [
        Badge("shape", str(summary.shape), f"A {summary.type_name} of that shape."),
        Badge("dtype", summary.dtype, "The dtype of its elements."),
        Badge("bytes", format_nbytes(summary.nbytes), f"Its elements take {summary.nbytes:,} bytes."),
        Badge("order", f"{summary.order}, strides {summary.strides}", "Bytes from one index of each axis to the next."),
        Badge("writeable", "writeable" if summary.is_writeable else "read-only", "Whether NumPy lets it be written."),
        Badge("memory", "who else sees it: not known", "tnp.aliases(array) looks for what shares its memory."),
    ]


def folded_text(text: str, max_height: int) -> tuple[list[str], list[str], str]:
    """Return the visible lines, those behind a fold, and their number in words.

    A text with a little more than `max_height` lines is whole; of a longer one, seven tenths of them are visible.
    """
    lines = text.split("\n")
    if not max_height or len(lines) < max_height + MIN_FOLDED:
        return lines, [], ""
    if sum([bool(line.strip()) for line in lines[max_height:]]) < MIN_FOLDED:
        return lines, [], ""
    num_seen = max(1, round(0.7 * max_height))
    num_more = sum([bool(line.strip()) for line in lines[num_seen:]])
    return lines[:num_seen], lines[num_seen:], counted(num_more, "more line")


def _marked(lines: list[str], words: list[re.Pattern[str]]) -> str:
    html = escape("\n".join(lines))
    for word in words:
        html = word.sub(rf'<span style="{css.ALARM}">\g<0></span>', html)
    return html


def info_document(info: TensorInfo) -> Document:
    """Return the badges over a table of the facts that are not as usual; `repr` has all."""
    summary = TensorSummary(info.type_name, "view", info, None, "", None)
    badges = [badge for badge in badges_of(summary) if badge.kind != "memory"]
    facts = [(field.name.lstrip("_"), getattr(info, field.name), field.default) for field in dataclasses.fields(info)]
    rows = [TableRow((name, legible(str(value)))) for name, value, usual in facts if value != usual]
    return Document((badges_line(badges), Table(("fact", "value"), tuple(rows))))

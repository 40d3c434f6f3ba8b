"""The report of a watch."""

from __future__ import annotations

from collections import Counter
from html import escape
from math import isfinite

from tensornp.core.memory.changes import Report, ReportLine
from tensornp.render.layout.document import Document, Part
from tensornp.render.layout.style import ALARM_TEXT, SMALL_TEXT
from tensornp.render.layout.words import listed

MAX_LINES = 20
"""Lines that are seen at once; a fold has the others."""
MAX_UNFOLDED = 3
"""Lines that need no summary."""
MAX_NAMES = 3


def report_document(report: Report) -> Document:
    """Return one line per change, non-finite values first; a page folds many below a summary."""
    lines, summary = _lines(report), _summary(report)
    seen, more = lines[:MAX_LINES], lines[MAX_LINES:]
    num_more = f"… and {len(more):,} more" if more else ""
    html = _divs(seen) + (f"<details><summary>{num_more}</summary>{_divs(more)}</details>" if more else "")
    heading = f"<b>{escape(report.heading)}</b>"
    page = f"<details><summary>{heading} · {escape(summary)}</summary>{html}</details>" if summary else heading + html
    texts = [f"{report.heading}:", summary, *(line for line, _ in seen), num_more]
    return Document((Part("\n  ".join(filter(None, texts)), page),), f"{SMALL_TEXT};padding:2px 0")


def _summary(report: Report) -> str:
    """Return counts and the largest difference; empty for a few lines."""
    if len(report.lines) <= MAX_UNFOLDED:
        return ""
    counts = Counter(line.come for line in report.lines)
    of = f" of {report.num_watched:,}" if counts[""] <= report.num_watched else ""
    parts = [f"{counts['']:,}{of} tensors and arrays"] if counts[""] else []
    parts += [f"{counts[come]:,} {come}" for come in ("new", "gone") if counts[come]]
    if num_odd := sum(bool(line.alarm) for line in report.lines):
        parts.append(f"{num_odd:,} with new NaN or infinities")
    largest = max(report.lines, key=lambda line: (not line.is_count, line.size))
    if largest.size and not largest.is_count:
        size = f"{largest.size:.3g} " if isfinite(largest.size) else ""
        parts.append(f"largest difference {size}in {largest.name}")
    return " · ".join(parts)


def _lines(report: Report) -> list[tuple[str, str]]:
    """Return each line with its alarm, equal ones as one; the largest changes first, and counts last."""
    alike: dict[tuple[str, ...], list[ReportLine]] = {}
    for line in sorted(report.lines, key=lambda one: (not one.alarm, one.is_count, -one.size)):
        alike.setdefault(line.parts, []).append(line)
    named = ((listed([one.name for one in group if one.name], MAX_NAMES), group[0]) for group in alike.values())
    return [(": ".join(filter(None, [names, " · ".join(first.parts)])), first.alarm) for names, first in named]


def _divs(lines: list[tuple[str, str]]) -> str:
    return "".join(
        f'<div style="{ALARM_TEXT}">{escape(text)}</div>' if alarm else f"<div>{escape(text)}</div>"
        for text, alarm in lines
    )

"""The report of a watch."""

from __future__ import annotations

from collections import Counter
from html import escape
from math import isfinite
from typing import Any, Literal, NamedTuple

from tensornp.render.layout.document import Document, Part
from tensornp.render.layout.style import ALARM_TEXT, SMALL_TEXT
from tensornp.render.layout.words import listed

MAX_LINES = 20
"""Lines that are seen at once; a fold has the others."""
MAX_UNFOLDED = 3
"""Lines that need no summary."""
MAX_NAMES = 3
"""Names in one line."""


class ReportLine(NamedTuple):
    """One tensor or array and its change; `is_count` marks a single integer, such as a step count."""

    name: str
    parts: tuple[str, ...]
    size: float = 0.0
    is_count: bool = False
    alarm: str = ""
    come: Literal["", "new", "gone"] = ""


class Report(NamedTuple):
    heading: str
    lines: tuple[ReportLine, ...] = ()
    num_watched: int = 0


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
    """Return counts and the largest difference; empty for a few lines, or if all say the same."""
    if len(report.lines) <= MAX_UNFOLDED or len({line.parts for line in report.lines}) == 1:
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
    """Return each line with its alarm; of many, equal ones as one, largest first."""
    is_many = len(report.lines) > MAX_UNFOLDED
    ordered = sorted(report.lines, key=lambda one: (not one.alarm, one.is_count, -one.size))
    alike: dict[Any, list[ReportLine]] = {}
    for i, line in enumerate(ordered if is_many else report.lines):
        alike.setdefault(line.parts if is_many else i, []).append(line)
    texts = []
    for group in alike.values():
        names = f"{listed([line.name for line in group], MAX_NAMES)}: " if group[0].name else ""
        texts.append((names + " · ".join(group[0].parts), group[0].alarm))
    return texts


def _divs(lines: list[tuple[str, str]]) -> str:
    return "".join(
        f'<div style="{ALARM_TEXT}">{escape(text)}</div>' if alarm else f"<div>{escape(text)}</div>"
        for text, alarm in lines
    )

"""What a watch has found changed."""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from math import isfinite
from typing import Any

from tensornp.core.summary.report import Report, ReportLine
from tensornp.render.layout.document import Both, Document, wrapped
from tensornp.render.layout.style import ALARM_TEXT, SMALL_TEXT
from tensornp.render.layout.words import listed

MAX_LINES = 20
MAX_UNFOLDED = 3
"""Lines that need no summary."""
MAX_NAMES = 3
"""Names of what has changed alike."""


def report_document(report: Report) -> Document:
    """Return one line for what has changed alike; a page folds many under the one that sums them up."""
    summary, alarm, shown = _summary(report), _alarm(report), _shown(report)
    lines = "".join(f"<div>{escape(line)}</div>" for line in shown)
    bad = f' <span style="{ALARM_TEXT}">{escape(alarm)}</span>' if alarm else ""
    page = f"<b>{escape(report.heading)}</b>{bad}"
    page = f"<details><summary>{page} · {escape(summary)}</summary>{lines}</details>" if summary else page + lines
    text = "\n  ".join([f"{report.heading}:", *filter(None, [alarm, summary]), *shown])
    return Document((Both(wrapped(text), page),), f"{SMALL_TEXT};padding:2px 0")


def _alarm(report: Report) -> str:
    """Return how many hold what is not finite since: ``27 are all NaN since this cell``; empty where none does."""
    alarms = [line.alarm for line in report.lines if line.alarm]
    if len(alarms) == 1:
        (name,) = (line.name for line in report.lines if line.alarm)
        what = "is NaN" if alarms[0] == "NaN" else "is all NaN" if alarms[0] == "all NaN" else f"has {alarms[0]}"
        return f"{name} {what} since this cell"
    num_all = sum(alarm in ("NaN", "all NaN") for alarm in alarms)
    num_some = len(alarms) - num_all
    said = [f"{num_all:,} {'is' if num_all == 1 else 'are'} all NaN"] if num_all else []
    if num_some:
        said.append(f"{num_some:,} {'has' if num_some == 1 else 'have'} NaN or infinities")
    return f"{', '.join(said)} since this cell" if said else ""


def _summary(report: Report) -> str:
    """Return how many have changed, by how much at most, and what holds for all; empty for a few."""
    if len(report.lines) <= MAX_UNFOLDED:
        return ""
    largest = max(report.lines, key=lambda line: (not line.is_count and line.size > 0, line.size))
    size = f"{largest.size:.3g} " if isfinite(largest.size) else ""
    aside = ", single integers aside" if any(line.size > largest.size for line in report.lines) else ""
    where = [f"largest |Δ| {size}in {largest.name}{aside}"] if largest.size else []
    same = set.intersection(*(set(line.parts) for line in report.lines))
    common = [part for part in report.lines[0].parts if part in same and not report.lines[0].come]
    common = [part if part.startswith("all ") else f"all {_of_several(part)}" for part in common]
    return " · ".join([*_counts(report), *where, *common])


def _counts(report: Report) -> list[str]:
    """Return how many have changed of those that were watched, and how many are new or gone."""
    counts = Counter(line.come for line in report.lines)
    of = f" of {report.num_watched:,}" if counts[""] <= report.num_watched else ""
    said = [f"{counts['']:,}{of} tensors and arrays"] if counts[""] else []
    return said + [f"{counts[come]:,} {come}" for come in ("new", "gone") if counts[come]]


def _shown(report: Report) -> list[str]:
    """Return the lines up to a bound, of many those alike as one, and what was left out of the look."""
    alike: dict[Any, list[ReportLine]] = {}
    for i, line in enumerate(report.lines):
        alike.setdefault(line.parts if len(report.lines) > MAX_UNFOLDED else i, []).append(line)
    lines = [_line(group) for group in alike.values()]
    num_more = len(lines) - MAX_LINES
    lines = [*lines[:MAX_LINES], *([f"… and {num_more:,} more"] if num_more > 0 else [])]
    return lines + ([report.left_out] if report.left_out else [])


def _line(group: list[ReportLine]) -> str:
    said = " · ".join(map(_of_several, group[0].parts) if len(group) > 1 else group[0].parts)
    return f"{listed([line.name for line in group], MAX_NAMES)}: {said}" if group[0].name else said


def _of_several(part: str) -> str:
    """Return what has happened to one, as it is said of several: ``lost their .grad``."""
    return re.sub(r"\bits\b", "their", part)

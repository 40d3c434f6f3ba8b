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

MAX_LINES, MAX_MORE = 20, 500
"""Lines that are seen at once, and those that a page has one fold away."""
MAX_UNFOLDED = 3
"""Lines that need no summary."""
MAX_NAMES, MAX_UNCHANGED = 3, 8
"""Names of what has changed alike, and of what has not changed."""


def report_document(report: Report) -> Document:
    """Return one line for what has changed alike; a page folds many under the one that sums them up."""
    summary, alarm, every = _summary(report), _alarm(report), _lines(report)
    shown, more, rest = every[:MAX_LINES], every[MAX_LINES : MAX_LINES + MAX_MORE], every[MAX_LINES + MAX_MORE :]
    end = [*_unchanged(report), *([report.left_out] if report.left_out else [])]
    lines = _divs(shown) + _fold(more, len(more) + len(rest)) + _divs(end)
    bad = f' <span style="{ALARM_TEXT}">{escape(alarm)}</span>' if alarm else ""
    page = f"<b>{escape(report.heading)}</b>{bad}"
    page = f"<details><summary>{page} · {escape(summary)}</summary>{lines}</details>" if summary else page + lines
    left = _left(len(more) + len(rest))
    text = "\n  ".join([f"{report.heading}:", *filter(None, [alarm, summary]), *shown, *left, *end])
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


def _lines(report: Report) -> list[str]:
    """Return the lines, of many those alike as one, and what has changed most first."""
    is_many = len(report.lines) > MAX_UNFOLDED
    alike: dict[Any, list[ReportLine]] = {}
    for i, line in enumerate(sorted(report.lines, key=_place) if is_many else report.lines):
        alike.setdefault(line.parts if is_many else i, []).append(line)
    return [_line(group) for group in alike.values()]


def _place(line: ReportLine) -> tuple[bool, bool, float]:
    """Return what puts first what is not finite any more, and then the largest differences; counts are none."""
    return not line.alarm, line.is_count, -line.size


def _left(num: int) -> list[str]:
    return [f"… and {num:,} more"] if num else []


def _fold(lines: list[str], num: int) -> str:
    """Return the lines for which a page has no room at once, under what is said of all `num`."""
    if not lines:
        return ""
    left = _left(num - len(lines))
    return f"<details><summary>{escape(_left(num)[0])}</summary>{_divs([*lines, *left])}</details>"


def _divs(lines: list[str]) -> str:
    return "".join(f"<div>{escape(line)}</div>" for line in lines)


def _unchanged(report: Report) -> list[str]:
    """Return what has not changed by its names, where that is less than what has."""
    names, num_changed = report.unchanged, sum(not line.come for line in report.lines)
    if not names or len(report.lines) <= MAX_UNFOLDED or len(names) >= num_changed:
        return []
    return [f"{len(names):,} unchanged: {listed(names, MAX_UNCHANGED)}"]


def _line(group: list[ReportLine]) -> str:
    said = " · ".join(map(_of_several, group[0].parts) if len(group) > 1 else group[0].parts)
    return f"{listed([line.name for line in group], MAX_NAMES)}: {said}" if group[0].name else said


def _of_several(part: str) -> str:
    """Return what has happened to one, as it is said of several: ``lost their .grad``."""
    return re.sub(r"\bits\b", "their", part)

"""What a watch has found changed, as text and as static HTML."""

from __future__ import annotations

from html import escape

from tensornp.core.summary.report import Report

MAX_LINES = 20


def report_text(report: Report) -> str:
    """Return a report as plain text, one line for each change."""
    return "\n  ".join([f"{report.heading}:", *_shown(report)])


def report_html(report: Report) -> str:
    """Return a report as static HTML."""
    html = "".join(f"<div>{escape(line)}</div>" for line in _shown(report))
    return (
        '<div class="tensornp" style="font-size:90%;line-height:1.6;padding:2px 0">'
        f"<b>{escape(report.heading)}</b>{html}</div>"
    )


def _shown(report: Report) -> list[str]:
    num_more = len(report.lines) - MAX_LINES
    lines = [*report.lines[:MAX_LINES], *([f"… and {num_more:,} more"] if num_more > 0 else [])]
    return lines + ([report.left_out] if report.left_out else [])

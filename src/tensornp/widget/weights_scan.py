"""Convert the results of a scan of weights for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tensornp.core.lowlevel.gradients import NOT_LOOKED_AT, Unguarded
from tensornp.core.lowlevel.text import counted
from tensornp.core.values.stats.record import alarm_text, alarms_of
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.live.gradients import gradients_of
from tensornp.models.live.refind import reached
from tensornp.models.outline.columns import figures_of, figures_of_gradient
from tensornp.models.scan.findings import ALARM_RANK, QUIET_RANK, Finding
from tensornp.models.scan.run import scan_entries
from tensornp.render.pictures.stats_line import line_of
from tensornp.widget.part import GoOn
from tensornp.widget.weight_rows import Found


class ScanFound(NamedTuple):
    """Scan results by name, a sentence on all, and the progress if it was stopped."""

    found: dict[str, Found]
    said: str
    stopped: str = ""


def found_in(rows: Sequence[WeightEntry], go_on: GoOn) -> ScanFound:
    """Scan weights; return the findings by name, and a sentence on all."""
    there, gone = _reached(rows)
    table = scan_entries(there, progress=go_on)
    unguarded = Unguarded()
    found: dict[str, Found] = {}
    num_odd = 0
    gradients = gradients_of(there, unguarded, lambda: go_on(1, 1)) if table.complete else {}
    for name, stats in table.items():
        alarms = tuple(alarms_of(stats))
        figures = figures_of(stats)
        findings = list(table.findings(name))
        if (gradient := gradients.get(name)) is not None:
            alarm = alarm_text(gradient)
            if not alarm and gradient.norm is not None:
                figures |= figures_of_gradient(gradient.norm, stats.norm)
            if alarm:
                num_odd += 1
                findings.append(Finding(ALARM_RANK - 1, f"{alarm} in .grad", "NaN or infinities in the gradient"))
        line = line_of(stats)
        found[name] = Found(tuple(findings), *line, figures, alarms)
    table.failed |= gone
    for name, why in table.failed.items():
        found[name] = Found((Finding(QUIET_RANK, f"not read: {why}", "not read"),))
    said = [*table.told(), *([f"{num_odd:,} with NaN or infinities in the gradient"] if num_odd else [])]
    said += [NOT_LOOKED_AT] if unguarded.left_out else []
    far = f"when {len(table):,} of {counted(len(there), 'weight')} were read" if table else "before any weight was read"
    return ScanFound(
        found, " · ".join(said), "" if table.complete else f"the scan was stopped {far}; Read again reads all"
    )


def _reached(rows: Sequence[WeightEntry]) -> tuple[list[WeightEntry], dict[str, str]]:
    """Return the weights that are there, and why others are not."""
    there: list[WeightEntry] = []
    gone: dict[str, str] = {}
    # The row says that a weight has no values.
    for one in (one for one in rows if one._can_be_read):
        try:
            there.append(reached(one))
        except TensornpError as error:
            gone[one.name] = str(error)
    return there, gone

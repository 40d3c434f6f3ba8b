"""The call after each cell, at which the shell shows what that cell has changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from IPython.display import display, update_display

from tensornp.core.summary.report import Report, ReportLine
from tensornp.fronts.ipython.shell import ShellSession
from tensornp.render.collections.report import report_document
from tensornp.render.layout.document import displayed
from tensornp.session.watch import Watch

if TYPE_CHECKING:
    from tensornp.fronts.ipython.config import TensorDisplay


MAX_REPORTS = 3
"""Reports of cells that one cell runs; the last of them is then updated in place."""


@dataclass(slots=True)
class _Run:
    """A run of a cell for which the front end has asked: how many cells run within each other, and their reports."""

    depth: int = 0
    num_reports: int = 0


class ShellWatch:
    """The watch of one shell; while it watches nothing, no callback is registered."""

    def __init__(self, shell: Any, config: TensorDisplay) -> None:
        self._shell = shell
        self.watch = Watch(ShellSession(shell), lambda: config.options)
        self._runs: dict[str, _Run] = {}

    def add(self, expressions: list[str]) -> int:
        """Watch what the expressions name from now on; returns how many tensors and arrays that is."""
        count = self.watch.add(expressions)
        self._follow()
        return count

    def remove(self, expressions: list[str]) -> list[str]:
        """Watch these no longer, or nothing at all if none is named; returns what was watched and is no longer."""
        gone = self.watch.remove(expressions)
        self._follow()
        return gone

    def _follow(self) -> None:
        """Be called after a cell exactly while something is watched."""
        events = self._shell.events
        for event, callback in (("pre_run_cell", self._before_cell), ("post_run_cell", self._after_cell)):
            is_called = callback in events.callbacks[event]
            if self.watch.names and not is_called:
                events.register(event, callback)
            elif is_called and not self.watch.names:
                events.unregister(event, callback)
        if not self.watch.names:
            self._runs.clear()

    def _before_cell(self, _: Any) -> None:
        self._runs.setdefault(self._asked_for(), _Run()).depth += 1

    def _after_cell(self, result: Any) -> None:
        """Show what the cell that has just ended has changed; a callback that raised would spoil the cell."""
        from tensornp.core.lowlevel.attributes import error_text

        name = self._asked_for()
        run = self._runs.setdefault(name, _Run())
        run.depth -= 1
        is_within = run.depth > 0
        if not is_within:
            del self._runs[name]
        # One that is not stored has the number of the last one, or of the one that runs it.
        is_stored = bool(getattr(result.info, "store_history", True) and result.execution_count)
        cell = f"In[{result.execution_count if is_stored else self._shell.displayhook.prompt_count}]"
        try:
            report = self.watch.report(cell)
            if is_within and run.num_reports >= MAX_REPORTS - 1:
                self.watch.postpone(cell)
                if report is not None:
                    run.num_reports += 1
                    self._update(report, name, run.num_reports)
                return
            if report is not None:
                run.num_reports += 1
                _show(report)
            self.watch.told()
        except KeyboardInterrupt:
            self.watch.postpone(cell)
            print(f"%tensorwatch was interrupted; the next report tells of {cell} too")
        except Exception as error:
            said = f"{error_text(error)}; %tensorwatch --off ends it"
            _show(Report(f"{cell}: the watch failed", (ReportLine("", (said,)),)))

    def _update(self, report: Report, run: str, count: int) -> None:
        """Show a report in the place of the last one; what it says will be said again when the whole cell has ended.

        Nobody knows whether that place is still there, or has ever been: outputs are cleared, and captured.
        """
        if run:
            report = replace(report, heading=f"{report.heading} so far, after {count:,} reports")
            publish = display if count == MAX_REPORTS else update_display
            publish(_bundle(report), raw=True, display_id=f"tensorwatch-{run}")

    def _asked_for(self) -> str:
        """Return which run of a cell the front end has asked for; empty where there is no page."""
        try:
            return str(self._shell.get_parent()["header"]["msg_id"])
        except (AttributeError, KeyError, TypeError):
            return ""


def _show(report: Report) -> None:
    display(_bundle(report), raw=True)


def _bundle(report: Report) -> dict[str, str]:
    return displayed("the report of %tensorwatch", lambda: report_document(report))

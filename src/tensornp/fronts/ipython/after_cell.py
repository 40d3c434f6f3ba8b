"""The call after each cell, at which the shell shows what that cell has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from IPython.display import display, update_display

from tensornp.core.summary.report import Report, ReportLine
from tensornp.fronts.ipython.shell import ShellSession
from tensornp.render.report import report_html, report_text
from tensornp.session.watch import Watch

if TYPE_CHECKING:
    from tensornp.fronts.ipython.config import TensorDisplay


MAX_REPORTS = 3
"""Reports under one cell of the page before the last of them is updated in place."""


class _Place(NamedTuple):
    """Where the page shows what is reported: under the run of a cell, which may run others, after some reports."""

    run: str
    num_reports: int = 0


class ShellWatch:
    """The watch of one shell; while it watches nothing, no callback is registered."""

    def __init__(self, shell: Any, config: TensorDisplay) -> None:
        self._shell = shell
        self.watch = Watch(ShellSession(shell), lambda: config.options)
        self._place = _Place("")

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
        is_called = self._after_cell in events.callbacks["post_run_cell"]
        if self.watch.names and not is_called:
            events.register("post_run_cell", self._after_cell)
        elif is_called and not self.watch.names:
            events.unregister("post_run_cell", self._after_cell)

    def _after_cell(self, result: Any) -> None:
        """Show what the cell that has just ended has changed; a callback that raised would spoil the cell."""
        from tensornp.core.lowlevel.attributes import error_text

        # Only a cell that is not stored has no number, and the shell still stands at the last one then.
        cell = f"In[{result.execution_count or self._shell.displayhook.prompt_count}]"
        try:
            report = self.watch.report(cell)
            if report is not None:
                self._show(report)
            self.watch.told()
        except KeyboardInterrupt:
            self.watch.postpone(cell)
            print(f"%tensorwatch was interrupted; the next report tells of {cell} too")
        except Exception as error:
            said = f"{error_text(error)}; %tensorwatch --off ends it"
            self._show(Report(f"{cell}: the watch failed", (ReportLine("", (said,)),)))

    def _show(self, report: Report) -> None:
        """Show a report under the cell that runs; where that runs many others, the last one is updated in place."""
        run = self._run()
        count = self._place.num_reports + 1 if run and run == self._place.run else 1
        self._place = _Place(run, count)
        if count > MAX_REPORTS:
            report = replace(report, heading=f"{report.heading} ({count:,} reports under this cell)")
        data = {"text/plain": report_text(report), "text/html": report_html(report)}
        if not run or count < MAX_REPORTS:
            display(data, raw=True)
            return
        publish = display if count == MAX_REPORTS else update_display
        publish(data, raw=True, display_id=f"tensorwatch-{run}")

    def _run(self) -> str:
        """Return which run of a cell the front end has asked for; empty where there is no page."""
        try:
            return str(self._shell.get_parent()["header"]["msg_id"])
        except (AttributeError, KeyError, TypeError):
            return ""

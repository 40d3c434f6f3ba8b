"""The call after each cell, at which the shell shows what that cell has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.display import display

from tensornp.core.summary.report import Report, ReportLine
from tensornp.fronts.ipython.shell import ShellSession
from tensornp.render.report import report_html, report_text
from tensornp.session.watch import Watch

if TYPE_CHECKING:
    from tensornp.fronts.ipython.config import TensorDisplay


class ShellWatch:
    """The watch of one shell; while it watches nothing, no callback is registered."""

    def __init__(self, shell: Any, config: TensorDisplay) -> None:
        self._shell = shell
        self.watch = Watch(ShellSession(shell), lambda: config.options)

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
                _show(report)
            self.watch.told()
        except KeyboardInterrupt:
            self.watch.postpone(cell)
            print(f"%tensorwatch was interrupted; the next report tells of {cell} too")
        except Exception as error:
            said = f"{error_text(error)}; %tensorwatch --off ends it"
            _show(Report(f"{cell}: the watch failed", (ReportLine("", (said,)),)))


def _show(report: Report) -> None:
    display({"text/plain": report_text(report), "text/html": report_html(report)}, raw=True)

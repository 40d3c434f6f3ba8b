"""The report of `%tensorwatch` after each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.display import display

from tensornp.core.memory.changes import Report, ReportLine
from tensornp.fronts.ipython.shell import ShellSession
from tensornp.render.collections.report import report_document
from tensornp.render.layout.document import displayed
from tensornp.session.watch import Watch

if TYPE_CHECKING:
    from tensornp.fronts.ipython.config import TensorDisplay


class ShellWatch:
    """Watches for one shell; while nothing is watched, no callback is registered."""

    def __init__(self, shell: Any, config: TensorDisplay) -> None:
        self._shell = shell
        self.watch = Watch(ShellSession(shell), lambda: config.options)
        # Cells that run within each other; only the outermost one has a report.
        self._depth = 0

    def add(self, expressions: list[str]) -> int:
        """Watch these expressions from now on; return the number of tensors and arrays."""
        count = self.watch.add(expressions)
        self._follow()
        return count

    def remove(self, expressions: list[str]) -> list[str]:
        """Stop watching these, or everything if none is named; return those that were watched."""
        gone = self.watch.remove(expressions)
        self._follow()
        return gone

    def _follow(self) -> None:
        """Register the callbacks exactly while something is watched."""
        events = self._shell.events
        for event, callback in (("pre_run_cell", self._before_cell), ("post_run_cell", self._after_cell)):
            is_called = callback in events.callbacks[event]
            if self.watch.names and not is_called:
                events.register(event, callback)
            elif is_called and not self.watch.names:
                events.unregister(event, callback)
                self._depth = 0

    def _before_cell(self, _: Any) -> None:
        self._depth += 1

    def _after_cell(self, result: Any) -> None:
        """Show the changes; an exception here would be printed below every cell."""
        from tensornp.core.lowlevel.attributes import error_text

        self._depth = max(self._depth - 1, 0)
        if self._depth:
            return
        # A cell that is not stored has the number of the last one.
        is_stored = bool(getattr(result.info, "store_history", True) and result.execution_count)
        cell = f"In[{result.execution_count if is_stored else self._shell.displayhook.prompt_count}]"
        try:
            report = self.watch.report(cell)
            if report is not None:
                _show(report)
        except KeyboardInterrupt:
            print(f"%tensorwatch was interrupted; the next report includes the changes of {cell}")
        except Exception as error:
            _show(Report(f"{cell}: the watch failed", (ReportLine("", (f"{error_text(error)}; %tensorwatch --off",)),)))


def _show(report: Report) -> None:
    display(displayed("the report of %tensorwatch", lambda: report_document(report)), raw=True)

"""`%tensors` and `%tensorwatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, no_var_expand
from IPython.display import display

from tensornp.fronts.ipython.arguments import as_usage_errors, split_names
from tensornp.fronts.ipython.config import SessionMagics
from tensornp.fronts.ipython.names import ShellSession, held_by_last_error, release
from tensornp.widget.page import keeps_outputs_apart

if TYPE_CHECKING:
    from tensornp.render.collections.report import Report
    from tensornp.session.watch import Watch
    from tensornp.widget.table import LiveTable

MAX_SEARCHED_ROWS = 2000
"""Rows of a table that a page can filter and sort, of which it prints fewer."""
MAX_SECONDS = 2.0
"""For the search of all names."""
OPTIONS = {"tensors": "release", "tensorwatch": "off"}


@magics_class
class MemoryMagics(SessionMagics):
    """The magics of one shell that tell what its names hold, and what changes."""

    _made_watch: Watch | None = None

    @property
    def _watch(self) -> Watch:
        """The watch, which is imported when it is first used."""
        if self._made_watch is None:
            from tensornp.session.watch import Watch

            self._made_watch = Watch(ShellSession(self.shell), lambda: self._display.options)
        return self._made_watch

    @no_var_expand
    @line_magic
    def tensors(self, line: str) -> None:
        """Show all tensors and arrays of the notebook, grouped by the memory that they share.

        Usage::

            %tensors [NAME ...]     NAME may have wildcards: model, model.*, *.grad
            %tensors --release

        Options::

            --release       drop results that only Out[n], _ and the last error hold; your own names are never touched

        Each storage counts once, and what graphs saved does not. "kept alive by" names what else keeps a tensor alive.
        """
        options, rest = self._split(line, OPTIONS["tensors"])
        names = split_names(rest)
        if "release" in options:
            if names:
                raise UsageError("--release takes no name; use `del name` for your own variables")
            print(release(self.shell))
            return
        with as_usage_errors("%tensors"):
            self._show_table(tuple(names))

    def _show_table(self, patterns: tuple[str, ...]) -> None:
        from tensornp.core.lowlevel.modes import outside_modes
        from tensornp.core.memory.storages import Survey
        from tensornp.core.summary.census import census_of
        from tensornp.render.collections.census import census_document
        from tensornp.render.layout.document import displayed

        shown = self._display.options.max_rows
        # More than are printed, of which those that are alike are printed as one.
        max_rows = max(shown, MAX_SEARCHED_ROWS)
        with outside_modes():
            survey = Survey(self.shell.user_ns, MAX_SECONDS)
            found = census_of(survey, max_rows=max_rows, patterns=patterns)
            if not patterns:
                behind = held_by_last_error({id(one.obj) for group in survey.groups for one in group.found})
                found = found._replace(nbytes_of_error=sum(group.nbytes for group in behind))
                del behind
            # It holds every tensor.
            del survey
        if patterns and not found.groups:
            raise UsageError(f"no tensor or array is called {' or '.join(patterns)}; %tensors shows them all")
        anchor = self._live.new_anchor()
        display(displayed("%tensors", lambda: census_document(found, shown), anchor), raw=True)

        def live_table() -> LiveTable:
            from tensornp.render.collections.census import census_rows
            from tensornp.widget.table import LiveTable

            return LiveTable(*census_rows(found), anchor=anchor, num_left_out=found.num_left_out)

        if found.groups and not keeps_outputs_apart(self.shell):
            self._live.show(anchor, live_table)

    @no_var_expand
    @line_magic
    def tensorwatch(self, line: str) -> None:
        """Report after each cell what that cell has changed: rows, largest difference, gradients, moves.

        Usage::

            %tensorwatch NAME ...     tensors, arrays, modules or containers: model.fc.weight, d["a"][0]
            %tensorwatch              list what is watched
            %tensorwatch --off [NAME ...]

        Options::

            --off           stop watching NAME, or everything

        No tensor is kept alive. Tensors above %config TensorDisplay.max_read_nbytes are compared by a sample.
        """
        options, rest = self._split(line, OPTIONS["tensorwatch"])
        names = list(dict.fromkeys(split_names(rest)))
        if "off" in options:
            gone = self._watch.remove(names)
            missing = [name for name in names if name not in gone]
            if missing:
                raise UsageError(f"{missing[0]} is not watched; %tensorwatch lists what is")
            print(f"no longer watched: {', '.join(gone)}" if gone else "nothing is watched")
            return
        if not names:
            watched = ", ".join(self._watch.names)
            print(f"watched after each cell: {watched}" if watched else "nothing is watched; %tensorwatch NAME begins")
            return
        with as_usage_errors():
            count = self._watch.add(names)
        noun = "tensor or array" if count == 1 else "tensors or arrays"
        print(f"watching {', '.join(names)} ({count:,} {noun}) after each cell")

    def after_cell(self, result: Any) -> None:
        """Show the changes of watched tensors, or an error in one line."""
        if self._made_watch is None:
            return
        from tensornp.core.lowlevel.attributes import error_text
        from tensornp.render.collections.report import Report, ReportLine

        cell = f"In[{result.execution_count or self.shell.displayhook.prompt_count}]"
        try:
            report = self._watch.report(cell)
            if report is not None:
                _show(report)
        except Exception as error:
            _show(Report(f"{cell}: the watch failed", (ReportLine("", (f"{error_text(error)}; %tensorwatch --off",)),)))


def _show(report: Report) -> None:
    from tensornp.render.collections.report import report_document
    from tensornp.render.layout.document import displayed

    display(displayed("the report of %tensorwatch", lambda: report_document(report)), raw=True)
